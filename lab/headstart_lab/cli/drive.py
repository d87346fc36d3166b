"""`headstart lab drive`: seconds of a held-out drive as files, beside the pair itself."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.errors import report_errors
from headstart_lab.errors import LabError


@report_errors
def drive(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if absent.")],
    seconds: Annotated[int, typer.Option(min=1, help="How many, each a clip.")] = 4,
    number: Annotated[int, typer.Option(min=0, help="Which of the held-out drives.")] = 0,
) -> None:
    """Write seconds of a held-out drive, as videos and as events, beside the trained pair.

    The models are linked to, not copied.
    """
    from headstart_lab.answering import held_out_drive
    from headstart_lab.pair import find_pair
    from headstart_lab.seconds import write_second

    pair = find_pair()
    directory.mkdir(parents=True, exist_ok=True)
    for model in (pair.target, pair.drafter):
        link = directory / model.name
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            raise LabError(
                f"{link} exists and is no link made by this command: choose another directory"
            )
        link.symlink_to(model.resolve(), target_is_directory=True)
    for index, second in enumerate(held_out_drive(seconds, skip=number)):
        write_second(directory / f"second-{index}.mp4", second)

    console = Console()
    console.print(f"wrote {seconds} seconds of a drive to {directory}, the lab pair beside them\n")
    line = (
        f"headstart ask --target {directory}/target --drafter {directory}/drafter"
        f" --video {directory}/second-0.mp4 --events {directory}/second-0.npz --stop-us 1000000"
        " --question 'Give a description of this scene.'"
    )
    console.print(line, style="cyan", markup=False, highlight=False, soft_wrap=True)
