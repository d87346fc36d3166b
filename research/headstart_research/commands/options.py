"""Options that several commands of the research have, each written once."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

from headstart.errors import BenchError


class Named(Protocol):
    """What can be chosen by its name."""

    @property
    def name(self) -> str: ...


One = TypeVar("One", bound=Named)
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


def chosen(known: Sequence[One], names: Sequence[str], kind: str) -> list[One]:
    """Those of some methods, workloads or parts that an option names."""
    by_name = {one.name: one for one in known}
    for name in names:
        if name not in by_name:
            there = ", ".join(map(shlex.quote, by_name))  # some hold commas
            raise BenchError(f"no {kind} is called {name!r} here; there are: {there}")
    return [by_name[name] for name in names]


def named_drafters(also: Sequence[str] | None) -> tuple[list[str], list[Path]]:
    """The drafters that `--also` names, and the directories of the bridges among them."""
    names = [each for each in also or () if not each.startswith(_BRIDGE)]
    bridges = [Path(each.removeprefix(_BRIDGE)) for each in also or () if each not in names]
    for directory in bridges:
        if not directory.is_dir():
            raise typer.BadParameter(f"--also {_BRIDGE}{directory}: there is no such directory")
    return names, bridges
