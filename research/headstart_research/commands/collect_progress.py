"""Shows how far a collection is: records, records a second, time left."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINE_S = 30.0


class CollectProgress:
    """A bar on a terminal; elsewhere a line now and then. Used from one thread."""

    def __init__(self, console: Console, line_s: float = LINE_S) -> None:
        self._console, self._line_s = console, line_s
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)
        self._total = self._done = self._first = 0
        self._start_s = self._said_s = time.monotonic()

    def expect(self, num_records: int) -> None:
        """So many are left to collect."""
        self._total = num_records
        self._bar.update(self._task, total=num_records, description="starting vLLM")

    def advance(self, num_records: int) -> None:
        """So many more were collected."""
        now_s = time.monotonic()
        if not self._done:
            # The models were loaded until here: the rate is that of the records after these.
            self._start_s, self._first = now_s, num_records
        self._done += num_records
        words = self._words(now_s)
        self._bar.update(self._task, advance=num_records, description=words)
        if not self._console.is_terminal and now_s - self._said_s >= self._line_s:
            self._said_s = now_s
            self._console.print(f"{self._done} of {self._total} records, {words}", highlight=False)

    def _words(self, now_s: float) -> str:
        seconds = now_s - self._start_s
        if self._done == self._first or not seconds:
            return "the first records are there"
        a_second = (self._done - self._first) / seconds
        left_min = (self._total - self._done) / a_second / 60
        return f"{a_second:.2f} a second, {left_min:.0f} min left"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
