"""What a release is made of: one version, and the same bytes wherever it is built."""

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / ".ci" / "distributions.py"
VERSION = (ROOT / "VERSION").read_text().strip()
OLDEST_PYTHON = (3, 11)
BESIDE = sorted(version.parent.name for version in ROOT.glob("*/VERSION"))
"""The folders of the distributions beside headstart."""
BUILT_FROM = ("pyproject.toml", "VERSION", "README.md", "LICENSE", "src", *BESIDE, ".ci")
DISTRIBUTIONS = ("headstart", *(f"headstart_{folder}" for folder in BESIDE))


def checkout(place: Path) -> Path:
    """A checkout of the files as they are here, with times of its own, and with short weights."""
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", *BUILT_FROM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name, follow_symlinks=False)
    for weights in (place / "lab").rglob("*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:1000])  # packing all of them takes a minute
    subprocess.run(["git", "add", "--all"], cwd=place, check=True)
    return place


def build(root: Path, umask: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(root / ".ci" / PROGRAM.name), str(root / "dist"), *arguments],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> list[Path]:
    """The distributions, from two checkouts of users with other habits."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("distributions are built from a git checkout")
    roots = [checkout(tmp_path_factory.mktemp("first") / "here")]
    roots.append(checkout(tmp_path_factory.mktemp("second") / "a longer path"))
    for file in (roots[1] / "src").rglob("*.py"):
        os.utime(file, (1, 1_000_000_000))
    for root, umask in zip(roots, (0o022, 0o007), strict=True):
        done = build(root, umask)
        assert done.returncode == 0, done.stderr
    return [root / "dist" for root in roots]


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(built):
    digests = [
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in place.iterdir()}
        for place in built
    ]
    assert digests[0] == digests[1]
    assert set(digests[0]) == {
        f"{name}-{VERSION}{kind}"
        for name in DISTRIBUTIONS
        for kind in (".tar.gz", "-py3-none-any.whl")
    }


@pytest.mark.slow
def test_a_wheel_can_be_built_from_each_sdist_alone(built, tmp_path):
    for name in DISTRIBUTIONS:
        with tarfile.open(built[0] / f"{name}-{VERSION}.tar.gz") as archive:
            assert not [member for member in archive if member.issym()]
            archive.extractall(tmp_path, filter="data")
        source, wheels = tmp_path / f"{name}-{VERSION}", tmp_path / f"wheel-{name}"
        wheels.mkdir()
        code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
        subprocess.run(
            [sys.executable, "-c", code, str(wheels)], cwd=source, check=True, capture_output=True
        )
        (again,) = wheels.iterdir()
        released = ZipFile(built[0] / again.name)
        contents = {entry: released.read(entry) for entry in released.namelist()}
        assert {
            entry: ZipFile(again).read(entry) for entry in ZipFile(again).namelist()
        } == contents


def test_a_tag_of_another_version_is_not_built(tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "--tag", "v99"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"VERSION says {VERSION}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_other_file_says_the_version():
    for name in ("pyproject.toml", *(f"{folder}/pyproject.toml" for folder in BESIDE)):
        project = tomllib.loads((ROOT / name).read_text())
        assert "version" not in project["project"]
        assert project["tool"]["setuptools"]["dynamic"]["version"] == {"file": "VERSION"}
    for folder in BESIDE:
        assert (ROOT / folder / "VERSION").resolve() == ROOT / "VERSION"


def test_the_source_is_python_that_the_oldest_version_reads():
    for folder in ("src", *BESIDE, "rig", "tools", "tests", "benchmarks", "examples", ".ci"):
        for module in (ROOT / folder).rglob("*.py"):
            ast.parse(module.read_text(), filename=str(module), feature_version=OLDEST_PYTHON)


def test_the_oldest_python_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    oldest = ".".join(map(str, OLDEST_PYTHON))
    for folder in BESIDE:
        other = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        assert project["project"]["requires-python"] == other["project"]["requires-python"]
    assert project["project"]["requires-python"].startswith(f">={oldest},")
    assert project["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert project["tool"]["mypy"]["python_version"] == oldest
    assert f"Programming Language :: Python :: {oldest}" in project["project"]["classifiers"]
