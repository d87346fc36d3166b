"""Drafters are registered in one place, and CONTRIBUTING's recipe for a new one works."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.registry import REGISTERED, MemoryOptions, build_cascade, registration
from headstart.speculation.vocabulary import TextVocabulary

ROOT = Path(__file__).parents[2]
CHECKS = """
import sys
from pathlib import Path

from headstart_research.bench.methods import Rig
from headstart_research.bench.replay import DraftLimits, methods, replay
from headstart_research.bench.log import LoggedAnswer
from headstart.engine.options import SchedulerOptions, Sources
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.registry import build_cascade
from headstart.speculation.vocabulary import TextVocabulary

assert Path(sys.modules["headstart"].__file__).is_relative_to(sys.argv[1])
options = SchedulerOptions.parse({"headstart": {"sources": {"memory": False, "ngram": False}}})
assert options.sources == Sources(("echo",)), options
cascade = build_cascade(options.sources.drafters, TextVocabulary(100))
request = cascade.begin(DraftRequest("r", StreamKey("", "camera"), "What?"))
draft = cascade.propose(request, (1, 2, 3), 2)
assert (draft.source, draft.tokens, draft.start) == ("echo", (1, 2), 3), draft
log = [LoggedAnswer(DraftRequest("1", StreamKey("", ""), "What?"), (7, 8) * 9)]
replayed = {run.method: run for run in (replay(log, m(), DraftLimits()) for m in methods(log))}
assert replayed["echo"].tokens_per_pass > replayed["ngram"].tokens_per_pass, replayed
found, _ = Rig("target").methods()
assert any(method.name == "echo" and method.sources == Sources(("echo",)) for method in found)
print("known everywhere")
"""


def recipe() -> list[str]:
    """The blocks of Python in CONTRIBUTING's recipe for a drafter."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("## Adding a drafter")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
    return [textwrap.dedent(block) for block in blocks]


def test_a_drafter_added_by_the_recipe_is_known_everywhere(tmp_path):
    drafter, rows = recipe()
    shutil.copytree(ROOT / "src" / "headstart", tmp_path / "headstart")
    folder = tmp_path / "headstart" / "speculation"
    (folder / "echo.py").write_text(drafter)
    registry = (folder / "registry.py").read_text()
    mark = ")\nDEFAULT_DRAFTERS"
    assert registry.count(mark) == 1
    (row,) = (line for line in rows.splitlines() if line.strip().startswith("Registration("))
    registry = registry.replace(mark, f"{row}\n{mark}")
    last = "from headstart.speculation.vocabulary import TextVocabulary\n"
    registry = registry.replace(last, f"{last}from headstart.speculation.echo import Echo\n")
    (folder / "registry.py").write_text(registry)
    done = subprocess.run(
        [sys.executable, "-c", CHECKS, str(tmp_path)],
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


@pytest.mark.parametrize("name", ["memroy", "nowhere:Echo", "headstart.speculation.ngram:None_"])
def test_a_drafter_that_is_not_there_is_refused_and_the_others_are_named(name):
    with pytest.raises(DraftingError, match="Name one of memory, ngram, ranker, wrong"):
        registration(name)


def test_each_drafter_bears_the_name_it_is_registered_by():
    for row in REGISTERED:
        assert row.build(MemoryOptions()).name == row.name
