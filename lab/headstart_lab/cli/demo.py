"""`headstart lab demo`: a page with the pair's answers on a held-out drive."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.terminal import quieten, report_errors


@report_errors
def demo(
    output: Annotated[Path, typer.Argument(help="The page to write.")] = Path("lab-demo.html"),
    pair: Annotated[
        Path | None,
        typer.Option(help="A directory with target/ and drafter/; else the installed pair."),
    ] = None,
    clips: Annotated[int, typer.Option(min=1, help="Seconds of the drive.")] = 20,
    drive: Annotated[int, typer.Option(min=0, help="Which of the held-out drives.")] = 0,
) -> None:
    """Ask both models about each second of a held-out drive, and mark what they got right."""
    from headstart_lab.pair import Pair, find_pair

    models = find_pair() if pair is None else Pair.at(pair)
    quieten()
    from headstart_lab.demo.page import demo_page
    from headstart_lab.demo.showing import show_drive

    command = ["headstart", "lab", "demo", str(output), "--clips", str(clips)]
    command += ["--drive", str(drive)] + ([] if pair is None else ["--pair", str(pair)])
    notes = Console(stderr=True)
    with notes.status("rendering") as status:
        shown = show_drive(
            models,
            clips,
            skip=drive,
            report=lambda work, done, total: status.update(f"{work} {done}/{total}"),
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(demo_page(shown, shlex.join(command)), encoding="utf-8")
    Console().print(
        f"wrote {output}: open it in a browser", markup=False, highlight=False, soft_wrap=True
    )
