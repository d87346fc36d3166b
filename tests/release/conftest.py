"""The distributions that the tests of this directory look at, built once for all of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".ci" / "distributions.py"
VERSION = (ROOT / "VERSION").read_text().strip()
BESIDE = sorted(version.parent.name for version in ROOT.glob("*/VERSION"))
"""The folders of the distributions beside headstart."""
BUILT_FROM = ("pyproject.toml", "VERSION", "README.md", "LICENSE", "src", *BESIDE, ".ci")


def checkout(place: Path) -> Path:
    """A checkout of the files that are here, with times of its own, and with short weights."""
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *BUILT_FROM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name, follow_symlinks=False)
    shorten_weights(place / "lab")
    subprocess.run(["git", "add", "--all"], cwd=place, check=True)
    return place


def shorten_weights(lab: Path) -> None:
    """Packing all of them takes a minute."""
    for weights in lab.rglob("*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:1000])


def built_in(root: Path, umask: int) -> Path:
    """The distributions of a checkout, built by somebody with this habit."""
    done = subprocess.run(
        [sys.executable, str(root / ".ci" / PROGRAM.name), str(root / "dist")],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    """The distributions, in one directory."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("distributions are built from a git checkout")
    return built_in(checkout(tmp_path_factory.mktemp("first") / "here"), 0o022)
