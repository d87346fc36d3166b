"""The results file of a finished training run: enough to judge the run and to repeat it."""

import json
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headstart_lab.scoring import Scores
from headstart_lab.training.train_config import TrainConfig
from headstart_research.bench.environment import versions
from headstart_research.training.savepoint import History

_PACKAGES = ("headstart", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Results:
    """What one model's run was given, and what it measured."""

    model: str
    size: Any
    config: TrainConfig
    num_clips: int
    history: History
    score: Scores
    blind: Scores
    names: dict[str, float]
    num_threads: int

    def write(self, path: Path) -> None:
        """Write it as JSON, atomically."""
        content = {
            "model": self.model,
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "seed": self.config.seed,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": platform.platform(),
            "num_threads": self.num_threads,
            "versions": {"python": platform.python_version(), **versions(_PACKAGES)},
            "size": asdict(self.size),
            "course": asdict(self.config),
            "num_clips": self.num_clips,
            "hours": self.history.seconds / 3600,
            "samples_per_s": self.config.num_steps * self.config.batch_size / self.history.seconds,
            "facts": self.score.facts,
            "facts_blind": self.blind.facts,
            "held_out_loss": self.history.held_out[-1][1],
            "score": asdict(self.score),
            "blind": asdict(self.blind),
            "eyes": self.names,
            "held_out_losses": self.history.held_out,
            "losses": [round(loss, 5) for loss in self.history.losses],
        }
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(path)
