"""Writes one line of JSON per request from a thread of its own.

A full or slow disk costs lines, never requests: lines that cannot be written are counted and
dropped.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

MAX_WAITING_LINES = 10_000


class AccessLog:
    """Thread-safe. `close` writes the lines that still wait."""

    def __init__(self, path: Path | None = None, words: TextIO | None = None) -> None:
        """Without a path, lines go to ``words``, or to standard error."""
        self.num_dropped = 0
        self._lines: queue.Queue[dict[str, Any] | threading.Event | None] = queue.Queue(
            MAX_WAITING_LINES
        )
        self._path, self._words = path, words
        self._thread = threading.Thread(target=self._write, name="access_log", daemon=True)
        self._thread.start()

    def note(self, **details: Any) -> None:
        """Queue one line; never waits and never raises."""
        try:
            self._lines.put_nowait({"time": round(time.time(), 3), **details})
        except queue.Full:
            self.num_dropped += 1

    def note_error(self, error: Exception, **details: Any) -> None:
        trace = "".join(traceback.format_exception(error))
        self.note(event="error", error=repr(error), trace=trace, **details)

    def settle(self) -> None:
        """Return when the lines so far are written, or after a few seconds."""
        written = threading.Event()
        try:
            self._lines.put_nowait(written)
        except queue.Full:
            return
        written.wait(timeout=5)

    def close(self) -> None:
        """Write the lines that wait, for a few seconds at most."""
        try:
            self._lines.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(timeout=5)

    def _write(self) -> None:
        file: TextIO | None = None
        while (line := self._lines.get()) is not None:
            if isinstance(line, threading.Event):
                line.set()
                continue
            try:
                if file is None:
                    own = self._words or sys.stderr
                    file = own if self._path is None else _opened(self._path)
                file.write(json.dumps(line, default=str) + "\n")
            except (OSError, ValueError):
                self.num_dropped += 1
                if file is not None and self._path is not None:
                    # Its buffer holds the line that failed; the next line opens the file anew.
                    with contextlib.suppress(OSError):
                        file.close()
                file = None


def _opened(path: Path) -> TextIO:
    """Nobody else may read it: it has traces, names of streams and addresses.

    Line-buffered: a crash loses no line, and a full disk fails at its line.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(handle, "a", buffering=1, encoding="utf-8")
