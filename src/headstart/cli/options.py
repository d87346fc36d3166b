"""Options that several commands have, each written once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.settings import CommandSettings, setting

SENSOR = "Size of the event sensor, as 640x480, where a recording does not say."
_TARGET = typer.Option(
    "--target",
    "--model",
    metavar="MODEL",
    help="Any vision model of vLLM's, or an EventGPT: a directory, or a name on the hub.",
)
Target = Annotated[str, _TARGET]
TargetIfGiven = Annotated[str | None, _TARGET]
DraftModel = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        hidden=True,
        help="An EventGPT that drafts from events, beside the target.",
    ),
]
Vllm = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An engine argument of vLLM's own; repeatable. draft_model.NAME is for the draft"
        " model's engine.",
    ),
]
Frames = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Frames of a clip that the target sees; else its own number, or 8.",
    ),
]
MaxTokens = Annotated[int, typer.Option(metavar="N", min=1, hidden=True, help="Longest answer.")]
JsonSchema = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="SCHEMA",
        help="A JSON schema, or a file of one; answers are JSON like it.",
    ),
]
Sensor = Annotated[
    str | None,
    typer.Option(metavar="WxH", help=SENSOR),
]
ClipTimes = Annotated[
    str | None,
    typer.Option(
        "--clip",
        metavar="START:STOP",
        help="Only from START on, up to but not including STOP: microseconds of the recording's"
        " clock. Either may be left out.",
    ),
]


@dataclass(frozen=True)
class AskSettings(CommandSettings):
    """How a target is asked, beside what is asked."""

    system: str = setting("", "A system prompt.")
    lora: Path | None = setting(None, "A LoRA adapter to answer with.", exists=True)
    sensor: str | None = setting(None, SENSOR)
    max_draft_tokens: int = setting(32, "Longest draft; 0 turns drafting off.", at_least=0)


def clip_times(clip: str | None) -> tuple[int | None, int | None]:
    if clip is None:
        return None, None
    start, colon, stop = clip.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(start) if start else None, int(stop) if stop else None)
    except ValueError:
        raise typer.BadParameter(
            f"--clip {clip}: give START:STOP in microseconds, as 500000:550000, 500000: or :550000"
        ) from None
