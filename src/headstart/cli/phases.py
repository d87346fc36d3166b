"""What vLLM does while it starts, read from what it logs, and how long each part took."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from headstart.cli.terminal import Terminal

FIRST = "reading vLLM"
BEGINNINGS = (
    ("Resolved architecture", "starting the engine"),
    ("Starting to load model", "loading the model"),
    ("Loading weights took", "measuring memory"),
    ("Warming up model for the compilation", "warming up"),
    ("KV cache size:", "warming up"),
    ("init engine (", "opening"),
)
"""A part of a line of vLLM's, and what begins with it."""
LOOK_S = 0.2


class Phases:
    """The parts of a start, and the seconds of each. The lines of several engines add up."""

    def __init__(self, now_s: float) -> None:
        self.current = FIRST
        self._since_s = self._first_s = now_s
        self._seconds: dict[str, float] = {}

    def hear(self, line: str, now_s: float) -> None:
        """A line was logged."""
        for part, phase in BEGINNINGS:
            if part in line and phase != self.current:
                self._count(now_s)
                self.current = phase

    def summary(self, now_s: float) -> str:
        """All seconds, and those of each part that took one at least."""
        self._count(now_s)
        parts = [f"{name} {s:.0f} s" for name, s in self._seconds.items() if s >= 1]
        shown = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        return f"{now_s - self._first_s:.0f} s{shown}"

    def _count(self, now_s: float) -> None:
        self._seconds[self.current] = self._seconds.get(self.current, 0.0) + now_s - self._since_s
        self._since_s = now_s


class Start:
    """Shows a start on a terminal until `up`; elsewhere only says when it is up."""

    def __init__(self, shown: Terminal, what: str) -> None:
        self._terminal, self._what = shown, what
        self._phases = Phases(time.monotonic())
        self._console = Console(file=shown.err)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,  # what is printed meanwhile is not for the terminal
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(f"starting {what}")
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, name="phases", daemon=True)

    def up(self) -> None:
        """It is up: take the progress away, and say how long it took."""
        if not self._over.is_set():
            self._close()
            took = self._phases.summary(time.monotonic())
            self._console.print(f"[dim]{self._what} is up after {took}[/]", soft_wrap=True)

    def _close(self) -> None:
        self._over.set()
        if self._reader.is_alive():
            self._reader.join()
            self._progress.stop()

    def _read(self) -> None:
        log = self._terminal.log
        assert log is not None
        with log.open(errors="replace") as lines:
            while not self._over.wait(LOOK_S):
                for line in lines:
                    self._phases.hear(line, time.monotonic())
                self._progress.update(
                    self._task, description=f"starting {self._what}: {self._phases.current}"
                )

    @contextmanager
    def shown(self) -> Iterator["Start"]:
        """Show it until it is up, or until the block is left, by an error for example."""
        if self._terminal.log is not None:
            self._progress.start()
            self._reader.start()
        try:
            yield self
        finally:
            self._close()
