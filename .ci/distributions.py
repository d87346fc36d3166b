"""Builds the wheel and the sdist of every distribution: from one commit always the same bytes.

    python .ci/distributions.py dist [--tag v0.1.0]

What would depend on the machine is set here: times (SOURCE_DATE_EPOCH, or the last commit's),
modes, owners, the order of files. Only files that git knows are built from. Two things remain: a
wheel names the setuptools that made it, and zlib compresses both.
"""

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {
    ".": ("pyproject.toml", "VERSION", "README.md", "LICENSE", "src"),
    "client": (".",),
    "events": (".",),
    "server": (".",),
    "research": (".",),
    "lab": (".",),
}
"""By its folder: what of it goes into a distribution's build."""
BUILD = """
import sys
from setuptools import build_meta
output = sys.argv[1]  # setuptools writes into sys.argv
build_meta.build_sdist(output)
build_meta.build_wheel(output)
"""
FILE_MODE, PROGRAM_MODE = 0o644, 0o755


def main() -> None:
    """Build into a directory, and print a line for each file as `sha256sum` does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--tag", help="refuse to build anything but this tag's version")
    arguments = parser.parse_args()
    if arguments.tag is not None:
        check_tag(arguments.tag)
    build(arguments.output)
    for file in sorted(arguments.output.iterdir()):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")


def check_tag(tag: str) -> None:
    """A tag names the version that is built, or nothing is built."""
    version = (ROOT / "VERSION").read_text().strip()
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag} and VERSION says {version}: tag v{version}, or change VERSION")


def build(output: Path) -> None:
    """Build every distribution into an empty directory."""
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        sys.exit(f"{output} is not empty: remove what is in it, or name another directory")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    os.umask(0o022)  # of what setuptools writes, too
    for folder, wanted in DISTRIBUTIONS.items():
        with TemporaryDirectory() as scratch:
            lay_out(ROOT / folder, wanted, Path(scratch))
            subprocess.run(
                [sys.executable, "-c", BUILD, str(output.resolve())],
                cwd=scratch,
                env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    for sdist in output.glob("*.tar.gz"):
        normalise(sdist, epoch)


def lay_out(folder: Path, wanted: tuple[str, ...], place: Path) -> None:
    """Copy what git knows of a folder; links become files, since a distribution stands alone."""
    for name in git("ls-files", "-z", *wanted, folder=folder).split("\0"):
        source, copy = folder / name, place / name
        if not name or not source.is_file():
            continue  # deleted here, and not committed yet
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copy.chmod(PROGRAM_MODE if source.stat().st_mode & 0o100 else FILE_MODE)


def git(*arguments: str, folder: Path = ROOT) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"distributions are built from a git checkout: {done.stderr.strip()}")
    return done.stdout


def normalise(sdist: Path, epoch: int) -> None:
    """Write an sdist anew, without what its machine left in it."""
    with tarfile.open(sdist) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        contents = [archive.extractfile(member) for member in members]
        bodies = [content.read() if content is not None else b"" for content in contents]
    with (
        sdist.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for member, body in zip(members, bodies, strict=True):
            same = tarfile.TarInfo(member.name)
            same.type, same.size, same.mtime = member.type, len(body), epoch
            same.mode = PROGRAM_MODE if member.isdir() or member.mode & 0o100 else FILE_MODE
            archive.addfile(same, io.BytesIO(body))


if __name__ == "__main__":
    main()
