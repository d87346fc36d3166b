"""Reads logs of a target's answers, in the order they were given."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.errors import ReplayError
from headstart.speculation.drafter import DraftRequest, StreamKey

Tokenize = Callable[[str], Sequence[int]]

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One row: a question about a clip, and what the target answered."""

    request: DraftRequest
    tokens: tuple[int, ...]
    drafted: tuple[int, ...] = ()
    """What another model answered to the same question, where the log has it."""


class WordTokens:
    """Numbers words and punctuation marks as they come, for logs of text without a tokenizer.

    A model's tokens are shorter than words, so its own tokenizer gives other figures.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> list[int]:
        """The numbers of the words of ``text``."""
        return [self._ids.setdefault(word, len(self._ids)) for word in _WORD.findall(text)]


def model_tokens(directory: Path) -> Tokenize:
    """The tokenizer of a model on disk; needs transformers."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ReplayError(
            "a model's tokenizer needs transformers: pip install transformers, "
            "or leave --tokenizer away"
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
    except (OSError, ValueError) as error:
        raise ReplayError(
            f"{directory} holds no tokenizer that transformers reads: give a model's directory"
        ) from error

    def tokenize(text: str) -> list[int]:
        return [int(token) for token in tokenizer.encode(text, add_special_tokens=False)]

    return tokenize


def read_log(file: Path, tokenize: Tokenize | None = None) -> list[LoggedAnswer]:
    """Read a JSONL file whose rows are in the order of their answers."""
    tokenize = tokenize or WordTokens()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"{file} cannot be read as text: {error}") from error
    answers = list(_rows(file, lines, tokenize))
    if not answers:
        raise ReplayError(f"{file} holds no answers: one JSON object a line is expected")
    return answers


def _rows(file: Path, lines: list[str], tokenize: Tokenize) -> Iterator[LoggedAnswer]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("not an object")
            request = DraftRequest(
                id=str(number),
                stream=StreamKey(str(row.get("tenant", "")), str(row.get("stream", ""))),
                question=str(row["question"]),
            )
            tokens = _tokens(row, "target", tokenize)
            if not tokens:
                raise ValueError("the answer is empty")
            yield LoggedAnswer(request, tokens, _tokens(row, "draft", tokenize, required=False))
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise ReplayError(
                f"{file}, line {number}: {error}. A row holds question and target_tokens or "
                "target_text, and may hold draft_tokens, stream and tenant"
            ) from error


def _tokens(
    row: dict[str, Any], who: str, tokenize: Tokenize, required: bool = True
) -> tuple[int, ...]:
    if f"{who}_tokens" in row:
        return tuple(int(token) for token in row[f"{who}_tokens"])
    if required or f"{who}_text" in row:
        return tuple(tokenize(str(row[f"{who}_text"])))
    return ()
