"""`headstart lab texts`: a log of answers in the target's style, to pre-train a drafter on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors


@dataclass(frozen=True)
class TextSettings(CommandSettings):
    """How many answers are written, and about what."""

    drives: int = setting(400, "How many drives.", at_least=1)
    clips: int = setting(12, "Seconds of each, four answers a second.", at_least=1)
    seed: int = setting(0, "Which drives.", at_least=0)


@report_errors
def texts(
    output: Annotated[Path, typer.Argument(dir_okay=False, help="The log to write, OUT.jsonl.")],
    pair: Annotated[
        Path | None,
        typer.Option(help="A directory with target/ and drafter/; else the installed pair."),
    ] = None,
    given: Annotated[list[str] | None, SET, TextSettings] = None,
) -> None:
    """Write answers as the target was taught to give them, drawing and asking nothing.

    They are about other drives than those of the pair, of headstart collect and of headstart bench.
    """
    from headstart_lab.pair import Pair, find_pair
    from headstart_lab.texts import drive_texts, target_template, text_drives, write_texts

    settings = TextSettings.read(given)
    streams = text_drives(settings.drives, settings.seed)
    template = target_template((find_pair() if pair is None else Pair.at(pair)).target)
    shown = track(streams, "drives", console=Console(stderr=True), transient=True)
    num_texts = write_texts(
        output, (row for stream in shown for row in drive_texts(stream, settings.clips, template))
    )
    Console().print(
        f"wrote {num_texts} answers to {output}", markup=False, highlight=False, soft_wrap=True
    )
