"""Drafters are found by their names, and CONTRIBUTING's recipe for a new one works."""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest

from headstart.drafters import registry
from headstart.drafters.registry import (
    ENTRY_POINTS,
    REGISTERED,
    Ingredients,
    build_cascade,
    registration,
)
from headstart.errors import DraftingError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.drafter import DraftRequest, StreamKey

ROOT = Path(__file__).parents[2]
CHECKS = """
from headstart_research.bench.methods import Rig
from headstart_research.bench.replay import DraftLimits, methods, replay
from headstart_research.bench.log import LoggedAnswer
from headstart.engine.options import SchedulerOptions, Sources
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.drafters.registry import build_cascade
from headstart.speculation.board import TextVocabulary

wanted = {"memory": False, "ngram": False, "echo": True}
options = SchedulerOptions.parse({"headstart": {"sources": wanted}})
assert SchedulerOptions.parse(options.additional_config()) == options
assert options.sources == Sources(("echo",)), options
cascade = build_cascade(options.sources.drafters, TextVocabulary(100))
request = cascade.begin(DraftRequest("r", StreamKey("", "camera"), "What?"))
draft = cascade.propose(request, (1, 2, 3), 2)
assert (draft.source, draft.tokens, draft.start) == ("echo", (1, 2), 3), draft
log = [LoggedAnswer(DraftRequest("1", StreamKey("", ""), "What?"), (7, 8) * 9)]
runs = [replay(log, method(), DraftLimits()) for method in methods(log, ["echo"])]
replayed = {run.method: run for run in runs}
assert replayed["echo"].tokens_per_pass > replayed["ngram"].tokens_per_pass, replayed
found, _ = Rig("target").methods()
assert any(method.name == "echo" and method.sources == Sources(("echo",)) for method in found)
print("known everywhere")
"""


def recipe() -> tuple[str, str]:
    """The file, and what registers it, of CONTRIBUTING's recipe for a drafter."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("## Adding a drafter")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(python|toml)\n(.*?)```", part, flags=re.DOTALL)
    (file, registered) = [textwrap.dedent(block) for _, block in blocks]
    return file, registered


def install(directory: Path) -> None:
    """What pip makes of the recipe."""
    file, registered = recipe()
    (directory / "echo.py").write_text(file)
    about = directory / "echo-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1\n")
    ((group, rows),) = tomllib.loads(registered)["project"]["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {place}" for name, place in rows.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))


def test_a_drafter_added_by_the_recipe_is_known_everywhere(tmp_path):
    install(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout == "known everywhere\n", done.stderr


def test_a_drafter_of_another_package_is_named_by_its_class(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(recipe()[0])
    monkeypatch.syspath_prepend(tmp_path)
    cascade = build_cascade(("memory", "elsewhere:Echo"), TextVocabulary(100))
    request = cascade.begin(DraftRequest("r", StreamKey("", "camera"), "What?"))
    assert cascade.propose(request, (5, 6), 8).source == "echo"


@pytest.mark.parametrize("name", ["memroy", "nowhere:Echo", "headstart.drafters.ngram:None_"])
def test_a_drafter_that_is_not_there_is_refused_and_the_others_are_named(name):
    with pytest.raises(DraftingError, match="Name one of memory, ngram, "):
        registration(name)


def test_each_drafter_bears_the_name_it_is_registered_by():
    for row in REGISTERED:
        assert row.built(Ingredients()).name == row.name
    named = {found.name: found.load().name for found in entry_points(group=ENTRY_POINTS)}
    assert all(name == row for name, row in named.items())


def test_one_that_is_not_installed_is_refused_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints())
    with pytest.raises(DraftingError, match=r"pip install 'headstart\[research\]'"):
        registration("ranker")


def test_one_that_takes_nothing_is_given_nothing():
    with pytest.raises(DraftingError, match="name it as memory"):
        registration("memory=much")


def test_all_drafters_of_a_cascade_read_one_memory():
    ingredients = Ingredients()
    assert registration("memory").built(ingredients) is ingredients.memory
