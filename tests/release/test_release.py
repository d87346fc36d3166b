"""What a release is made of: one version, and the same bytes wherever it is built."""

import ast
import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
from zipfile import ZipFile

import pytest

from tests.release.conftest import BESIDE, PROGRAM, ROOT, VERSION, built_in, checkout

OLDEST_PYTHON = (3, 11)
DISTRIBUTIONS = ("headstart", *(f"headstart_{folder}" for folder in BESIDE))


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(released, tmp_path):
    """The second in a checkout of a user with other habits."""
    other = checkout(tmp_path / "a longer path")
    for file in (other / "src").rglob("*.py"):
        os.utime(file, (1, 1_000_000_000))
    digests = [
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in place.iterdir()}
        for place in (released, built_in(other, 0o007))
    ]
    assert digests[0] == digests[1]
    assert set(digests[0]) == {
        f"{name}-{VERSION}{kind}"
        for name in DISTRIBUTIONS
        for kind in (".tar.gz", "-py3-none-any.whl")
    }


@pytest.mark.slow
def test_a_wheel_can_be_built_from_each_sdist_alone(released, tmp_path):
    for name in DISTRIBUTIONS:
        with tarfile.open(released / f"{name}-{VERSION}.tar.gz") as archive:
            assert not [member for member in archive if member.issym()]
            archive.extractall(tmp_path, filter="data")
        source, wheels = tmp_path / f"{name}-{VERSION}", tmp_path / f"wheel-{name}"
        wheels.mkdir()
        code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
        subprocess.run(
            [sys.executable, "-c", code, str(wheels)], cwd=source, check=True, capture_output=True
        )
        (again,) = wheels.iterdir()
        wheel = ZipFile(released / again.name)
        contents = {entry: wheel.read(entry) for entry in wheel.namelist()}
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
