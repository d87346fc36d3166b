"""`headstart lab texts`: a log of answers in the target's style, to pre-train a drafter on."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from headstart.cli.errors import report_errors


@report_errors
def texts(
    output: Annotated[Path, typer.Argument(dir_okay=False, help="The log to write, OUT.jsonl.")],
    drives: Annotated[int, typer.Option(min=1, help="How many drives.")] = 400,
    clips: Annotated[int, typer.Option(min=1, help="Seconds of each, four answers a second.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Which drives.")] = 0,
    pair: Annotated[
        Path | None,
        typer.Option(help="A directory with target/ and drafter/; else the installed pair."),
    ] = None,
) -> None:
    """Write answers as the target was taught to give them, drawing and asking nothing.

    They are about other drives than those of the pair, of headstart collect and of headstart bench.
    """
    from headstart_lab.pair import Pair, find_pair
    from headstart_lab.texts import drive_texts, target_template, text_drives, write_texts

    streams = text_drives(drives, seed)
    template = target_template((find_pair() if pair is None else Pair.at(pair)).target)
    shown = track(streams, "drives", console=Console(stderr=True), transient=True)
    num_texts = write_texts(
        output, (row for stream in shown for row in drive_texts(stream, clips, template))
    )
    Console().print(
        f"wrote {num_texts} answers to {output}", markup=False, highlight=False, soft_wrap=True
    )
