"""Digests of a model's files, kept beside them: are they still as they were made?

The file is of the form that `sha256sum --check` reads.
"""

import hashlib
from pathlib import Path

FILE = "SHA256SUMS"
_CARD = "README.md"  # written by a person, after the model


def write_digests(directory: Path) -> None:
    """Note what the files of a model are now. A directory has them once its model is trained."""
    files = (path for path in sorted(directory.iterdir()) if path.is_file())
    lines = [f"{_digest(path)}  {path.name}\n" for path in files if path.name not in (FILE, _CARD)]
    (directory / FILE).write_text("".join(lines), encoding="utf-8")


def changed_files(directory: Path) -> list[str]:
    """Names of those that are missing or not as they were made."""
    noted = directory / FILE
    if not noted.is_file():
        return [FILE]
    rows = (line.split(maxsplit=1) for line in noted.read_text(encoding="utf-8").splitlines())
    return [
        name
        for digest, name in rows
        if not (directory / name).is_file() or _digest(directory / name) != digest
    ]


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
