"""The saved state of a training run: everything that its next step depends on."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from headstart.errors import TrainingError
from headstart_research.training.schedule import TrainSchedule


@dataclass
class History:
    """What has been measured so far; ``losses`` has one entry a step.

    ``held_out`` has pairs of steps done and loss; ``seconds`` is time spent in steps.
    """

    losses: list[float] = field(default_factory=list)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def num_steps(self) -> int:
        """Steps done, which is also the place in the data."""
        return len(self.losses)


@dataclass(frozen=True)
class Savepoint:
    """The file that holds a run's state; it is written atomically."""

    path: Path

    def write(self, model: Any, optimizer: Any, config: TrainSchedule, history: History) -> None:
        """Replace the saved state; a crash in the middle leaves the old one."""
        partial = self.path.with_name(self.path.name + ".partial")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "course": asdict(config),
            "history": asdict(history),
            "rng": torch.get_rng_state(),
        }
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def read(self, model: Any, optimizer: Any, config: TrainSchedule) -> History:
        """Load the saved state into model and optimizer; without one, return an empty history."""
        if not self.path.exists():
            return History()
        state: dict[str, Any] = torch.load(self.path, weights_only=True, mmap=True)
        if state["course"] != asdict(config):
            changed = [
                key for key, value in asdict(config).items() if state["course"][key] != value
            ]
            raise TrainingError(
                f"{self.path} is of a run with another {', '.join(changed)};"
                " give the same again, or another output directory"
            )
        try:
            model.load_state_dict(state["model"])
        except RuntimeError as error:
            raise TrainingError(
                f"{self.path} is of a model of another size or vocabulary; choose another output"
                " directory"
            ) from error
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        history = state["history"]
        held_out = [(int(step), float(loss)) for step, loss in history["held_out"]]
        return History(list(history["losses"]), held_out, history["seconds"])
