"""What the two parts of `serve_live` share: the plan of their rounds, and what may be wrong."""

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.film import Film
from benchmarks.live_load import Round, WindowName
from rich.console import Console
from rich.table import Table

from headstart_lab.language.questions import Question

NUM_FRAMES = 8
QUESTION = Question.DESCRIBE.usual
NUM_WARMUP = 2
"""Windows of each camera before those that are timed."""
KEY, ABUSER_KEY, OPERATOR_KEY = "key-cameras", "key-abuser", "key-operator"
SETTINGS: dict[str, dict[str, Any]] = {
    "tenants": {"cameras": [KEY], "abuser": [ABUSER_KEY]},
    "operators": {"operator": [OPERATOR_KEY]},
}
# vLLM keeps 4 GiB of processed pictures by default, which would look like a leak for an hour.
ENGINE = {"mm_processor_cache_gb": 0.125}
MAX_SHOWN = 5


@dataclass(frozen=True)
class Plan:
    """How many cameras show how many windows, in how many rounds."""

    num_cameras: int
    every_s: float
    """From the end of one camera's window to that of the next camera's."""
    num_rounds: int
    num_windows: int
    """Of each camera, in one round."""

    @property
    def window_s(self) -> float:
        """So long that the windows of all cameras end in turn."""
        return self.every_s * self.num_cameras

    def films(self, num_rounds: int) -> tuple[Film, ...]:
        """For so many rounds, of which none shows a window of another."""
        num_windows = NUM_WARMUP + num_rounds * self.num_windows
        return tuple(
            Film.of_drive(number, num_windows, NUM_FRAMES) for number in range(self.num_cameras)
        )

    def warmup(self, films: Sequence[Film]) -> Round:
        """Before the first round."""
        return Round(films, QUESTION, self.window_s, range(NUM_WARMUP))

    def round(self, films: Sequence[Film], number: int) -> Round:
        """The windows of a round."""
        first = NUM_WARMUP + number * self.num_windows
        return Round(films, QUESTION, self.window_s, range(first, first + self.num_windows))

    def figures(self) -> dict[str, Any]:
        """For a result."""
        return {
            "cameras": self.num_cameras,
            "window_s": self.window_s,
            "rounds": self.num_rounds,
            "windows_a_round": self.num_cameras * self.num_windows,
        }


@dataclass(frozen=True)
class Equality:
    """Which answers are bare vLLM's."""

    compared: tuple[WindowName, ...]
    differ: tuple[WindowName, ...]
    faults: tuple[str, ...]

    @classmethod
    def of(cls, texts: Mapping[WindowName, str], bare: Mapping[WindowName, str]) -> "Equality":
        """Compare window by window, where both were asked."""
        compared = tuple(sorted(texts.keys() & bare.keys()))
        differ = tuple(name for name in compared if texts[name] != bare[name])
        faults = (
            f"camera {camera}, window {window}: {texts[camera, window]!r}, and bare vLLM says"
            f" {bare[camera, window]!r}"
            for camera, window in differ[:MAX_SHOWN]
        )
        nothing = () if compared else ("no answer was compared with bare vLLM's",)
        return cls(compared, differ, (*faults, *nothing))

    def figures(self) -> dict[str, int]:
        """For a result."""
        return {"compared": len(self.compared), "equal": len(self.compared) - len(self.differ)}


def ratio(over_ms: float | None, under_ms: float | None) -> float | None:
    """Of two times, where there are both."""
    return round(over_ms / under_ms, 2) if over_ms and under_ms else None


def spread(ratios: Sequence[float | None]) -> list[float]:
    """The smallest, the median and the largest."""
    known = [one for one in ratios if one is not None]
    return [min(known), round(statistics.median(known), 2), max(known)] if known else []


def show(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table for people."""
    table = Table(*headings)
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)


def note(what: str) -> None:
    """Progress, on stderr: stdout gets the figures."""
    print(what, file=sys.stderr, flush=True)
