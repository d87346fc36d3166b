"""Keeps each tenant's answers in a log of its own, for drafters to learn from later.

A log is read by `headstart collect --log`, `headstart train memory` and `headstart replay`. It is
written from a thread: a slow or full disk costs rows, never requests.
"""

import fcntl
import hashlib
import json
import os
import queue
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.speculation.drafter import StreamKey
from headstart_server.metrics import LOGGED_ANSWERS
from headstart_server.settings_table import SettingsError

MAX_WAITING_ROWS = 512
MAX_QUESTION_CHARACTERS = 16_384
"""A longer question is dropped, so that the rows that wait are bounded in memory too."""
COMPLETE = ("stop", "length")
"""How an answer ends that the target was left to give; others were aborted, or failed."""
_WRITTEN, _DROPPED = LOGGED_ANSWERS.labels("written"), LOGGED_ANSWERS.labels("dropped")


@dataclass(frozen=True)
class AnswerRow:
    """One row."""

    time: datetime
    stream: StreamKey
    question: str
    tokens: tuple[int, ...]
    finish_reason: str

    def line(self) -> bytes:
        row = {
            "time": self.time.isoformat(timespec="milliseconds"),
            "tenant": self.stream.tenant,
            "stream": self.stream.stream,
            "question": self.question,
            "target_tokens": self.tokens,
            "finish_reason": self.finish_reason,
        }
        return json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"


class TenantLogs:
    """Thread-safe. One process at a time writes into a directory; `close` writes what waits."""

    def __init__(self, directory: Path, max_tenant_bytes: int) -> None:
        """Half of the bytes are the log that grows, the other half the one before it."""
        self._directory, self._max_file_bytes = directory, max_tenant_bytes // 2
        self._lock = _taken(directory)
        self._waiting: queue.Queue[AnswerRow | None] = queue.Queue(MAX_WAITING_ROWS)
        self._thread = threading.Thread(target=self._write, name="tenant_logs", daemon=True)
        self._thread.start()

    def asked(self, question: Question) -> None:
        """Nothing is known yet that could be logged."""

    def answered(self, question: Question, record: RequestRecord) -> None:
        """Have an answer written, if it is complete and may be kept; never waits or raises."""
        stream, tokens, reason = question.stream, record.token_ids, record.finish_reason
        # Without a stream no memory remembers it either; without words nobody knows what for.
        if stream is None or question.is_private or not question.words or not tokens:
            return
        if reason is None or reason not in COMPLETE:
            return
        row = AnswerRow(datetime.now(UTC), stream, question.words, tuple(tokens), reason)
        try:
            if len(row.question) > MAX_QUESTION_CHARACTERS:
                raise queue.Full
            self._waiting.put_nowait(row)
        except queue.Full:
            _DROPPED.inc()

    def close(self) -> None:
        """Write the rows that wait, for a few seconds at most."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=1)
            self._thread.join(timeout=5)
        self._lock.close()

    def _write(self) -> None:
        while (row := self._waiting.get()) is not None:
            try:
                is_written = self._append(row.stream.tenant, row.line())
            except OSError:
                is_written = False
            (_WRITTEN if is_written else _DROPPED).inc()

    def _append(self, tenant: str, line: bytes) -> bool:
        """Add a line to a tenant's log; whether all of it was written.

        The log is opened for each line, so that it may be moved away at any time.
        """
        if len(line) > self._max_file_bytes:
            return False
        path = self._directory / f"{log_name(tenant)}.jsonl"
        with suppress(FileNotFoundError):
            if path.stat().st_size + len(line) > self._max_file_bytes:
                path.replace(path.with_suffix(".older.jsonl"))
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                # A kill, or a full disk, broke a line off. Readers forgive that at the end only.
                os.ftruncate(handle, path.read_bytes().rfind(b"\n") + 1)
            return os.write(handle, line) == len(line)
        finally:
            os.close(handle)


def log_name(tenant: str) -> str:
    """The name of a tenant's log without its suffix: no path, and no other tenant's."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", tenant)[:40].lstrip("-") or "open"
    return f"{readable}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


def _taken(directory: Path) -> TextIO:
    """The lock of a directory, which is made if it is not there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError as error:
        raise SettingsError(
            f"no logs of answers can be written into {directory} ({error.strerror}): name a"
            " directory that is yours as answer_log, or leave it out"
        ) from error
    try:
        # Unlike flock's, this lock is not kept by an engine's process that was forked.
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise SettingsError(
            f"another server logs answers into {directory}: name another directory as answer_log"
        ) from error
    return lock
