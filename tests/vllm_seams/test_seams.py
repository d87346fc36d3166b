"""Which parts of vLLM are touched, and how a change of one of them is found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.doctor.findings import VLLM_VERSION
from headstart.errors import CompatibilityError
from tools.vllm_seams.seams import Seams, digest
from tools.vllm_seams.source_tree import SourceTree
from tools.vllm_seams.touched import seams_now, touched

ROOT = Path(__file__).parents[2]

ENGINE = {
    "__init__.py": "",
    "core.py": '''
class Base:
    """Words."""
    limit: int = 4
    def step(self, width=1):
        """More words."""
        return width + 1  # a comment
    def stop(self):
        return 0
class Request:
    def __init__(self):
        self.tokens = []
def made(count): return count
''',
}
OWN = """
from engine.core import Base, Request, made
class Ours(Base):
    def step(self, request: Request):
        made(1)
        return super().step() + len(request.tokens) + self.mine
"""


def package(folder: Path, files: dict[str, str]) -> SourceTree:
    for name, text in files.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return SourceTree(folder)


@pytest.fixture
def engine(tmp_path):
    return package(tmp_path / "engine", ENGINE)


@pytest.fixture
def own(tmp_path):
    return package(tmp_path / "own", {"__init__.py": "", "ours.py": OWN})


def test_what_is_imported_overridden_and_used_is_touched(own, engine):
    assert touched(own, engine, "own.ours") == {
        "engine.core.Base",
        "engine.core.Base.step",
        "engine.core.Request",
        "engine.core.Request.tokens",
        "engine.core.made",
    }


def test_a_name_that_the_engine_lacks_is_an_error_that_names_it(own, tmp_path):
    lacking = {**ENGINE, "core.py": ENGINE["core.py"].replace("def made", "def moved")}
    with pytest.raises(CompatibilityError, match=r"engine\.core\.made"):
        seams_now(own, package(tmp_path / "later" / "engine", lacking), "1")


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("# a comment", "# another", []),
        ("More words.", "Other words.", []),
        ("    def stop(self):\n        return 0", "    def stop(self):\n        return 1", []),
        ("return width + 1", "return width + 2", ["Base.step"]),
        ("width=1", "width=2", ["Base", "Base.step"]),
        ("limit: int = 4", "limit: int = 5", ["Base"]),
        ("def stop(self)", "def stop(self, now)", ["Base"]),
        ("self.tokens = []", "self.tokens = {}", ["Request.tokens"]),
        ("def made(count)", "def moved(count)", ["made"]),
    ],
)
def test_a_change_is_found_where_it_matters(own, engine, tmp_path, before, after, changed):
    seams = seams_now(own, engine, "1")
    assert before in ENGINE["core.py"]
    later = {**ENGINE, "core.py": ENGINE["core.py"].replace(before, after)}
    differences = seams.differences(package(tmp_path / "later" / "engine", later))
    assert [one.name.removeprefix("engine.core.") for one in differences] == changed
    assert all(one.users == ("own/ours.py",) for one in differences)
    assert [one.is_gone for one in differences] == [name == "made" for name in changed]


def test_a_digest_does_not_depend_on_the_python_that_made_it(engine):
    # Of Python 3.11; a file of digests is read by all versions.
    assert digest(engine, "engine.core.made") == "d1407f93998fb1b0"


def test_seams_of_an_unknown_version_say_which_there_are():
    with pytest.raises(CompatibilityError, match=f"only of {VLLM_VERSION}"):
        Seams.of("9.9")


def test_the_file_says_what_is_touched_now():
    done = subprocess.run(
        [sys.executable, "-m", "tools.vllm_seams", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def other_vllm(tmp_path_factory):
    """The installed vLLM's source with one method changed, and one module taken away."""
    from tools.vllm_seams.seams import installed_vllm

    copy = tmp_path_factory.mktemp("other") / "vllm"
    shutil.copytree(installed_vllm(), copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    scheduler = copy / "v1" / "core" / "sched" / "scheduler.py"
    text = scheduler.read_text()
    assert text.count("def _preempt_request(") == 1
    scheduler.write_text(text.replace("def _preempt_request(", "def _preempt_request(me, "))
    (copy / "renderers" / "base.py").unlink()
    return copy


def compare(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tools.vllm_seams", "--compare", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_every_seam_is_found_in_the_installed_vllm():
    done = compare()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 changed, 0 gone" in done.stdout


@pytest.mark.slow
def test_what_another_vllm_has_changed_is_named(other_vllm):
    done = compare(str(other_vllm))
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines()]
    scheduler = "vllm.v1.core.sched.scheduler.Scheduler"
    user = "headstart/engine/scheduler.py"
    assert ["changed", f"{scheduler}._preempt_request", user] in rows
    assert {row[0] for row in rows if "vllm.renderers.base" in row[1]} == {"gone"}
    assert len([row for row in rows if row[0] in ("changed", "gone")]) < 12
