"""Answers that memory knows from the start, in a file: a JSON object a line, the oldest first.

    {"tenant": "north", "question": "What is happening?", "target_tokens": [450, 1820]}

The tenant may be left out, and further fields are not looked at: a log of answers that holds their
tokens is such a file already.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.drafters.tenant_memory import MAX_SITE_ANSWERS
from headstart.errors import DraftingError

MAX_ID = 2**31 - 1  # of a token, as memory keeps them


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


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """What the target answered to a question of a tenant, whichever stream it was about."""

    tenant: str
    question: str
    tokens: tuple[int, ...]


def read_memory_log(file: Path) -> list[RememberedAnswer]:
    """The newest answers of each tenant, no more than its memory would keep."""
    try:
        answers = _newest(_rows(file))
    except (OSError, UnicodeDecodeError) as error:
        raise DraftingError(
            f"the memory log {file} cannot be read: {error}. Write it with headstart train memory"
        ) from error
    if not answers:
        raise DraftingError(f"the memory log {file} holds no answers: leave it out")
    return answers


def write_memory_log(file: Path, answers: Iterable[RememberedAnswer]) -> list[RememberedAnswer]:
    """Write what `read_memory_log` would read of these answers; those are returned."""
    newest = _newest(answers)
    rows = (
        {"tenant": answer.tenant, "question": answer.question, "target_tokens": answer.tokens}
        for answer in newest
    )
    try:
        file.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    except OSError as error:
        raise DraftingError(f"{file} cannot be written: {error}. Name another file") from error
    return newest


def _newest(answers: Iterable[RememberedAnswer]) -> list[RememberedAnswer]:
    tenants: dict[str, deque[RememberedAnswer]] = defaultdict(
        lambda: deque(maxlen=MAX_SITE_ANSWERS)
    )
    for answer in answers:
        tenants[answer.tenant].append(answer)
    return [answer for kept in tenants.values() for answer in kept]


def _rows(file: Path) -> Iterator[RememberedAnswer]:
    for number, line in log_lines(file):
        try:
            yield _answer(json.loads(line))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DraftingError(
                f"the memory log {file}, line {number}: {error}. A row holds question and"
                " target_tokens, and may hold tenant; headstart train memory writes such rows"
            ) from error


def _answer(row: Any) -> RememberedAnswer:
    if not isinstance(row, dict):
        raise TypeError("not an object")
    tenant, question, tokens = row.get("tenant", ""), row["question"], row["target_tokens"]
    if not isinstance(tenant, str) or not isinstance(question, str):
        raise TypeError("tenant and question are texts")
    if not isinstance(tokens, list) or not tokens:
        raise TypeError("target_tokens is a list of ids")
    if not all(type(token) is int and 0 <= token <= MAX_ID for token in tokens):
        raise ValueError("target_tokens holds something that is no id")
    return RememberedAnswer(tenant, question, tuple(tokens))
