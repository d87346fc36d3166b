"""Nothing grows unnoticed: lines, files, rooms, options, pages stay under the caps of sizes.toml.

The caps of walks are held where walks are recorded, in tests/engine/test_walks.py and
tests/serve/test_walks.py.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from headstart.cli import app
from tests.documents import by_hand, words_by_hand
from tests.sizes import CAPS
from tests.test_architecture import FLOORS, IMPORTED, floors_of

ROOT = Path(__file__).parents[1]
SHOW_HELP = ("help", "help_all")
"""Every command has both; the second shows what the first leaves out."""


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def num_lines(folder: str) -> int:
    return sum(len(file.read_text().splitlines()) for file in python_files(folder))


def options(group: typer.core.TyperGroup, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every option of every command and group, those that help does not show too."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, typer.core.TyperGroup):
            yield from options(command, (*path, name))
        for each in command.params:
            if each.param_type_name == "option" and each.name not in SHOW_HELP:
                yield " ".join((*path, name, each.opts[0]))


COUNTED = {
    **{("lines", folder): num_lines(folder) for folder in CAPS["lines"]},
    **{("files", folder): len(python_files(folder)) for folder in CAPS["files"]},
    ("shape", "rooms of headstart"): len(list((ROOT / "src" / "headstart").glob("*/__init__.py"))),
    ("shape", "floors of headstart"): max(floors_of(IMPORTED).values()),
    ("shape", "floors of folders"): len(FLOORS),
    ("options", "all"): len(list(options(get_command(app)))),
    ("documents", "pages"): len(by_hand()),
    ("documents", "words"): sum(words_by_hand(page.read_text()) for page in by_hand()),
    ("documents", "lines of README"): len((ROOT / "README.md").read_text().splitlines()),
}


@pytest.mark.parametrize(("table", "name"), COUNTED, ids=lambda part: part.replace(" ", "-"))
def test_it_is_no_larger_than_its_cap(table, name):
    counted, cap = COUNTED[table, name], CAPS[table][name]
    assert counted <= cap, f"{name}: {counted} {table}, and its cap is {cap}; see tests/sizes.toml"


@pytest.mark.parametrize(("table", "name"), COUNTED, ids=lambda part: part.replace(" ", "-"))
def test_a_cap_is_near_what_it_holds(table, name):
    """A cap with much room would let things grow unnoticed."""
    counted, cap = COUNTED[table, name], CAPS[table][name]
    is_goal = (table, name) in {("documents", "words"), ("shape", "floors of folders")}
    assert is_goal or counted >= 0.95 * cap, f"lower {name} of {table} from {cap} to {counted}"


def test_every_cap_is_held():
    held = {(table, name) for table in CAPS for name in CAPS[table]}
    walks = ("ask", "live window", "HTTP chat", "drafted token")
    assert held - COUNTED.keys() == {("walks", name) for name in walks}


def test_every_distribution_has_a_cap_of_lines():
    found = {init.parents[1].name for init in ROOT.glob("*/headstart*/__init__.py")}
    assert found <= CAPS["lines"].keys()


def test_options_are_counted_over_all_packages_and_below_groups():
    found = set(options(get_command(app)))
    assert {"ask --target", "bench --target", "lab train --set", "serve --config"} <= found
    assert not [each for each in found if re.search(r" --help(-all)?$", each)]
