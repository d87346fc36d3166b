"""Options of every command that reads clips."""

from typing import Annotated

import typer

Frames = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Frames of a clip or window that the target is shown; else its own number, or 8.",
    ),
]
Sensor = Annotated[
    str | None,
    typer.Option(help="Size of the event sensor, as 640x480, where a recording does not say."),
]
