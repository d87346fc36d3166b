"""Records of answers that were logged before, by `headstart serve` or `headstart watch --record`.

A log knows no clips, so these records have no features: they are for drafters that read words
only. A row without ``tenant`` belongs to the tenant without a name; rows of other tenants than the
one that is named are left out.
"""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from headstart.drafters.memory_log import MAX_ID, log_lines
from headstart.errors import CollectError
from headstart_research.collect.gathering import Piece
from headstart_research.collect.record import Record
from headstart_research.collect.shard import Shard


def logged_records(file: Path, tenant: str, shard: Shard) -> list[Record]:
    """The tenant's answers on a shard's streams, in the order in which they were given."""
    found: list[Record] = []
    num_before: Counter[str] = Counter()
    try:
        for number, line in log_lines(file):
            row = _row(file, number, line)
            if row.get("tenant", "") != tenant:
                continue
            stream = str(row.get("stream", ""))
            if shard.holds(stream):
                found.append(_record(file, number, row, stream, num_before[stream]))
                num_before[stream] += 1
    except (OSError, UnicodeDecodeError) as error:
        raise CollectError(f"{file} cannot be read: {error}. Give a log of answers") from error
    return found


def logged_pieces(records: list[Record], done: dict[str, set[int]]) -> Iterator[Piece]:
    """Each record that is not collected yet."""
    for record in records:
        if record.clip not in done.get(record.stream, ()):
            yield partial(_alone, record)


def _alone(record: Record) -> list[Record]:
    return [record]


def _row(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CollectError(
            f"{file}, line {number} holds no JSON ({error}): give a log with an object a line"
        ) from error
    if not isinstance(row, dict):
        raise CollectError(f"{file}, line {number} is no object: give a log with an object a line")
    return row


def _record(file: Path, number: int, row: dict[str, Any], stream: str, index: int) -> Record:
    question, tokens = row.get("question"), row.get("target_tokens")
    if (
        not isinstance(question, str)
        or not isinstance(tokens, list)
        or not tokens
        or not all(type(token) is int and 0 <= token <= MAX_ID for token in tokens)
    ):
        raise CollectError(
            f"{file}, line {number}: a row holds question and target_tokens, the ids of the"
            " target's answer, and may hold stream and tenant. Log tokens, not text"
        )
    return Record(
        stream=stream,
        index=index,
        clip=index,
        clip_digest="",
        question=question,
        prompt_ids=(),
        answer_ids=tuple(tokens),
        finish_reason=str(row.get("finish_reason", "")),
    )
