"""Logged answers: what a target said, clip by clip, in the order it was asked."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.drafters.port import Ask, StreamKey
from headstart.errors import ReplayError

Tokenize = Callable[[str], Sequence[int]]

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One row: a question about a clip, and what the target answered."""

    ask: Ask
    tokens: tuple[int, ...]
    drafted: tuple[int, ...] = ()
    """What a drafter of its own said to the same question, where it was logged."""


class WordTokens:
    """Words and punctuation marks, numbered as they come: for logs of text without a tokenizer.

    A model's own tokens are shorter than words, so figures differ from those of its tokenizer.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> list[int]:
        """The numbers of the words of ``text``."""
        return [self._ids.setdefault(word, len(self._ids)) for word in _WORD.findall(text)]


def model_tokens(directory: Path) -> Tokenize:
    """The tokenizer of a model on disk, read by transformers."""
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
        raise ReplayError(f"{directory} holds no tokenizer that transformers reads") from error

    def tokenize(text: str) -> list[int]:
        return [int(token) for token in tokenizer.encode(text, add_special_tokens=False)]

    return tokenize


def read_log(file: Path, tokenize: Tokenize | None = None) -> list[LoggedAnswer]:
    """The rows of a JSONL file, oldest first as they stand in it."""
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
            ask = Ask(
                request=str(number),
                stream=StreamKey(str(row.get("tenant", "")), str(row.get("stream", ""))),
                question=str(row["question"]),
            )
            tokens = _tokens(row, "target", tokenize)
            if not tokens:
                raise ValueError("the answer is empty")
            yield LoggedAnswer(ask, tokens, _tokens(row, "draft", tokenize, required=False))
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
