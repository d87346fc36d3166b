"""Progress lines of a training run: plain text, for a terminal and for a log."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from headstart_research.training.loop import Report
from headstart_research.training.savepoint import History
from headstart_research.training.schedule import TrainSchedule

_RECENT = 20


@dataclass(frozen=True)
class Progress:
    """Writes lines with ``say``: at most one every ``every_s`` seconds about steps."""

    say: Callable[[str], None]
    every_s: float = 15.0

    def of(self, name: str) -> Report:
        """The callback for the training loop of the model ``name``."""
        said_at = 0.0

        def report(config: TrainSchedule, history: History) -> None:
            nonlocal said_at
            if monotonic() - said_at < self.every_s and history.num_steps < config.num_steps:
                return
            said_at = monotonic()
            self.say(f"{name}: {describe(config, history)}")

        return report


def describe(config: TrainSchedule, history: History) -> str:
    recent = history.losses[-_RECENT:]
    a_step = history.seconds / max(1, history.num_steps)
    left_s = int(a_step * (config.num_steps - history.num_steps))
    line = (
        f"step {history.num_steps}/{config.num_steps}"
        f"  loss {sum(recent) / len(recent):.4f}"
        f"  {config.batch_size / max(a_step, 1e-9):.2f} samples/s"
        f"  {left_s // 3600}:{left_s // 60 % 60:02}:{left_s % 60:02} left"
    )
    if history.held_out:
        line += f"  held out {history.held_out[-1][1]:.4f}"
    return line
