"""The documents that people read, and the blocks of code in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
WALKED = [*GUIDES, DOCS / "serving.md"]
"""Documents whose blocks are all run: tests/guides."""
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
RUN_ELSEWHERE = {
    "README.md": "tests/test_readme.py",
    "operation.md": "tests/serve/test_cameras.py",
}
"""Documents whose commands a test of their own runs."""
COMMAND = re.compile(r"(\$ )?(\w+=\S+ )*headstart ")
"""How a line begins that calls the program, variables of its environment before it."""

_FILLED_IN = re.compile(r"^<!-- table: \S+ -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
"""A table that `python -m benchmarks.figures` writes."""


def by_hand() -> list[Path]:
    """The pages that somebody writes: not the reference, nor the licences, which programs make."""
    made = {DOCS / "licences.md", *(DOCS / "reference").glob("*.md")}
    return [ROOT / "CHANGELOG.md", *(path for path in DOCUMENTS if path not in made)]


def words_by_hand(text: str) -> int:
    """Words as a reader counts them, code included: pieces with a letter or a digit in them."""
    return sum(any(map(str.isalnum, word)) for word in _FILLED_IN.sub("", text).split())


def blocks(document: Path, language: str) -> list[str]:
    """The blocks of one language."""
    text = document.read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def every_block(document: Path) -> Iterator[tuple[str, str, str]]:
    """Of each block why it is not run, if a comment before it says so; its language; its code."""
    pattern = r"(?:^<!-- not run: (.+?) -->\n)?^```(\S*)\n(.*?)^```"
    found = re.finditer(pattern, document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return ((each[1] or "", each[2], each[3]) for each in found)


def commands(document: Path) -> Iterator[list[str]]:
    """The words of each command of headstart's that stands in a block, whatever its language."""
    for _, language, code in every_block(document):
        if language not in ("", "bash", "console", "sh", "text"):
            continue
        for line in code.replace("\\\n", " ").splitlines():
            if COMMAND.match(line) and " ... " not in line:  # which stands for words left out
                yield shlex.split(COMMAND.sub("", line).removesuffix("&"), comments=True)
