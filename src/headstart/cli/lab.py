"""`headstart lab`: models and pictures made on this machine, nothing downloaded."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.errors import report_errors

app = typer.Typer(help="Small models and scenes to try headstart with.", no_args_is_help=True)


@app.callback()
def _lab() -> None:
    """Keep `lab` a group while it has a single command."""


@app.command()
@report_errors
def tiny(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if absent.")],
    real_geometry: Annotated[
        bool, typer.Option(help="Frames as large as the published model's: 2056 video tokens.")
    ] = False,
) -> None:
    """Write an untrained Video-LLaVA and a short street video to ask it about.

    The model is laid out like the published one and answers noise: it shows that everything
    works, not what a trained model says.
    """
    from headstart.lab.street import street_video
    from headstart.lab.tiny import TinyVideoLlava

    size = TinyVideoLlava.real_geometry() if real_geometry else TinyVideoLlava()
    target, video = directory / "target", directory / "street.mp4"
    size.save(target)
    street_video().write(video)
    console = Console()
    console.print(f"wrote {target} (random weights) and {video}")
    console.print(
        f"\nheadstart ask --target {target} --video {video} --question 'What is happening?'",
        style="cyan",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
