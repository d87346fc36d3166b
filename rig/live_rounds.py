"""Rounds in which live cameras are shown to servers: their plan, and what may be wrong."""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headstart_lab.language.questions import Question
from rig.film import Film
from rig.live_load import Round, WindowName
from rig.serving import Workspace

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


Measure = Callable[[Plan, Workspace], tuple[dict[str, Any], list[str]]]
"""Gives the figures, and the promises that were broken."""


def measure_from_command_line(what: str, measure: Measure, usual: Plan, minutes: float) -> None:
    """Measure the rounds that the arguments ask for, print a line of JSON, fail with the faults."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("target", type=Path, help="a Video-LLaVA")
    parser.add_argument("--cameras", type=int, default=usual.num_cameras)
    parser.add_argument("--minutes", type=float, default=minutes, help="of all rounds of a kind")
    parser.add_argument("--rounds", type=int, default=usual.num_rounds)
    parser.add_argument(
        "--every", type=float, default=usual.every_s, help="seconds from window to window"
    )
    options = parser.parse_args()
    round_s = 60 * options.minutes / options.rounds
    num_windows = max(1, round(round_s / (options.every * options.cameras)))
    plan = Plan(options.cameras, options.every, options.rounds, num_windows)
    with tempfile.TemporaryDirectory(prefix="headstart-live-") as made:
        here = Workspace(Path(made), options.target.absolute(), None, Path(made), "float32")
        figures, faults = measure(plan, here)
    print(json.dumps({**figures, "faults": faults}))
    sys.exit("\n".join(faults) or None)


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
