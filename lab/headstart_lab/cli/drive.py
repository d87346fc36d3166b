"""`headstart lab drive`: seconds of a held-out drive as files, beside the pair itself."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.terminal import report_errors
from headstart_lab.errors import LabError


@report_errors
def drive(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if absent.")],
    seconds: Annotated[int, typer.Option(min=1, help="How many, each a clip.")] = 4,
    number: Annotated[int, typer.Option(min=0, help="Which of the held-out drives.")] = 0,
) -> None:
    """Write seconds of a held-out drive as videos, and the events of the last 0.05 s of each.

    The trained pair is copied beside them (60 MB): whatever is done to it there, the installed one
    stays as it is.
    """
    from headstart_lab.answering import held_out_drive
    from headstart_lab.pair import find_pair
    from headstart_lab.seconds import write_second

    pair = find_pair()
    directory.mkdir(parents=True, exist_ok=True)
    for model in (pair.target, pair.drafter):
        _copy(model, directory / model.name)
    for index, second in enumerate(held_out_drive(seconds, skip=number)):
        write_second(directory / f"second-{index}.mp4", second)

    console = Console()
    console.print(f"wrote {seconds} seconds of a drive to {directory}, the lab pair beside them\n")
    line = (
        f"headstart ask --target {directory}/target --video {directory}/second-0.mp4"
        " --question 'Give a description of this scene.' --vllm enforce_eager=true"
    )
    console.print(line, style="cyan", markup=False, highlight=False, soft_wrap=True)


def _copy(model: Path, place: Path) -> None:
    """Copy a model of the pair, unless another is there."""
    from headstart.doctor.digests import FILE
    from headstart_lab.place import check_place

    if place.is_symlink():  # as this command once made
        place.unlink()
    is_copy = (place / FILE).is_file() and (place / FILE).read_bytes() == (
        model / FILE
    ).read_bytes()
    if place.exists() and not is_copy:
        raise LabError(
            f"{place} exists and is no copy of the installed pair's {model.name}: choose another"
            " directory, or take it away"
        )
    check_place(place, has_begun=True)
    if is_copy:
        shutil.copytree(model, place, copy_function=shutil.copyfile, dirs_exist_ok=True)
        return
    unfinished = place.with_name(f".{place.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(model, unfinished, copy_function=shutil.copyfile)
    unfinished.rename(place)
