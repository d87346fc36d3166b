"""Options that several commands of the research have, each written once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path | None,
    typer.Option(
        exists=True, file_okay=False, help="Your recordings; without it, headstart-lab's drives."
    ),
]
Questions = Annotated[
    list[str] | None,
    typer.Option(
        "--question", metavar="TEXT", help="What to ask about your recordings; repeatable."
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DRAFTER",
        help="A drafter to replay too: a registered name such as ranker, package.module:Class, or"
        " bridge=DIRECTORY; repeatable. A bridge must not have been trained on these answers.",
    ),
]
_BRIDGE = "bridge="


def named_drafters(also: Sequence[str] | None) -> tuple[list[str], list[Path]]:
    """The drafters that `--also` names, and the directories of the bridges among them."""
    names = [each for each in also or () if not each.startswith(_BRIDGE)]
    bridges = [Path(each.removeprefix(_BRIDGE)) for each in also or () if each not in names]
    for directory in bridges:
        if not directory.is_dir():
            raise typer.BadParameter(f"--also {_BRIDGE}{directory}: there is no such directory")
    return names, bridges
