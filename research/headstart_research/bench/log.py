"""Reads logs of a target's answers, in the order they were given."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from headstart.drafters.memory_log import MAX_ID, log_lines
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


def read_log(
    file: Path, tokenize: Tokenize | None = None, stream_field: str = "stream"
) -> list[LoggedAnswer]:
    """Read a JSONL file whose rows are in the order of their answers.

    ``stream_field`` says of which stream a row is.
    """
    tokenize = tokenize or WordTokens()
    try:
        lines = list(log_lines(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"{file} cannot be read as text: {error}") from error
    answers = list(_rows(file, lines, tokenize, stream_field))
    if not answers:
        raise ReplayError(f"{file} holds no answers: one JSON object a line is expected")
    return answers


def cut(log: Sequence[LoggedAnswer], num_answers: int, seed: int = 0) -> list[LoggedAnswer]:
    """The same answers as those of many young streams, which are under way at the same time.

    Every ``num_answers`` answers of a stream in a row become a stream of their own, in their order.
    Which stream is next is drawn: each of the answers left is as likely.
    """
    num_seen: Counter[StreamKey] = Counter()
    streams: dict[StreamKey, list[LoggedAnswer]] = {}
    for row in log:
        whole = row.request.stream
        part = StreamKey(whole.tenant, f"{whole.stream}/{num_seen[whole] // num_answers}")
        num_seen[whole] += 1
        request = replace(row.request, stream=part)
        streams.setdefault(part, []).append(replace(row, request=request))
    turns = [stream for stream, rows in streams.items() for _ in rows]
    Random(seed).shuffle(turns)
    left = {stream: iter(rows) for stream, rows in streams.items()}
    return [next(left[stream]) for stream in turns]


def _rows(
    file: Path, lines: Sequence[tuple[int, str]], tokenize: Tokenize, stream_field: str
) -> Iterator[LoggedAnswer]:
    for number, line in lines:
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("not an object")
            request = DraftRequest(
                id=str(number),
                stream=StreamKey(str(row.get("tenant", "")), str(row.get(stream_field, ""))),
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
        tokens = tuple(int(token) for token in row[f"{who}_tokens"])
        if not all(0 <= token <= MAX_ID for token in tokens):
            raise ValueError(f"{who}_tokens holds something that is no id")
        return tokens
    if required or f"{who}_text" in row:
        return tuple(tokenize(str(row[f"{who}_text"])))
    return ()
