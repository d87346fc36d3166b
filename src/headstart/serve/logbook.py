"""One line of JSON a request, written by a thread of its own.

A full disk or a slow one costs lines, never requests: what cannot be written is counted and
dropped.
"""

import contextlib
import json
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

MAX_WAITING_LINES = 10_000


class Logbook:
    """Thread-safe. `close` writes what is waiting."""

    def __init__(self, path: Path | None = None) -> None:
        self.num_dropped = 0
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue(MAX_WAITING_LINES)
        self._path = path
        self._thread = threading.Thread(target=self._write, name="logbook", daemon=True)
        self._thread.start()

    def note(self, **details: Any) -> None:
        """One line; never waits and never raises."""
        try:
            self._lines.put_nowait({"time": round(time.time(), 3), **details})
        except queue.Full:
            self.num_dropped += 1

    def close(self) -> None:
        """Write what is waiting, for a few seconds at most."""
        try:
            self._lines.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(timeout=5)

    def _write(self) -> None:
        file: TextIO | None = None
        while (line := self._lines.get()) is not None:
            try:
                if file is None:
                    # Line by line: a crash loses none, and a full disk is noticed at the line.
                    file = sys.stderr if self._path is None else self._path.open("a", buffering=1)
                file.write(json.dumps(line, default=str) + "\n")
            except (OSError, ValueError):
                self.num_dropped += 1
                if file is not None and file is not sys.stderr:
                    # What it still holds is what could not be written; the next line opens it anew.
                    with contextlib.suppress(OSError):
                        file.close()
                file = None
