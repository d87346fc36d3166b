"""A line now and then about a running run: plain text, good on a terminal and in a log."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from headstart.lab.training.course import Course
from headstart.lab.training.loop import Report
from headstart.lab.training.savepoint import History

_RECENT = 20


@dataclass(frozen=True)
class Progress:
    """Says lines; at most one every ``every_s`` seconds about steps."""

    say: Callable[[str], None]
    every_s: float = 15.0

    def of(self, name: str) -> Report:
        """What the loop calls after each step of the model ``name``."""
        said_at = 0.0

        def report(course: Course, history: History) -> None:
            nonlocal said_at
            if monotonic() - said_at < self.every_s and history.num_steps < course.num_steps:
                return
            said_at = monotonic()
            self.say(f"{name}: {describe(course, history)}")

        return report


def describe(course: Course, history: History) -> str:
    """Steps, loss, speed, and how long it will still take."""
    recent = history.losses[-_RECENT:]
    a_step = history.seconds / max(1, history.num_steps)
    left_s = int(a_step * (course.num_steps - history.num_steps))
    line = (
        f"step {history.num_steps}/{course.num_steps}"
        f"  loss {sum(recent) / len(recent):.4f}"
        f"  {course.batch_size / max(a_step, 1e-9):.2f} samples/s"
        f"  {left_s // 3600}:{left_s // 60 % 60:02}:{left_s % 60:02} left"
    )
    if history.held_out:
        line += f"  held out {history.held_out[-1][1]:.4f}"
    return line
