"""The lines of a log of answers, of which a program may have been killed while it wrote one."""

import json
from collections.abc import Iterator
from pathlib import Path


def log_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Each line that is not blank, with its number, the first being 1.

    A row that breaks off where the file ends is left out: its writer was killed, or is not done.
    Any other line is given as it is. Raises OSError and UnicodeDecodeError.
    """
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip() and not _breaks_off(line):
                yield number, line.decode("utf-8")


def _breaks_off(line: bytes) -> bool:
    """Whether it is the beginning of an object; only the last line of a file has no line end."""
    if line.endswith(b"\n") or not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False
