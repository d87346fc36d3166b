"""What a finished run leaves beside its weights: enough to judge it and to do it again."""

import json
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from headstart.lab.scoring import Scores
from headstart.lab.training.course import Course
from headstart.lab.training.savepoint import History

_PACKAGES = ("headstart", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Results:
    """One model's run."""

    model: str
    size: Any
    course: Course
    num_clips: int
    history: History
    score: Scores
    blind: Scores
    names: dict[str, float]
    num_threads: int

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        content = {
            "model": self.model,
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "seed": self.course.seed,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": platform.platform(),
            "num_threads": self.num_threads,
            "versions": {"python": platform.python_version(), **_versions()},
            "size": asdict(self.size),
            "course": asdict(self.course),
            "num_clips": self.num_clips,
            "hours": self.history.seconds / 3600,
            "samples_per_s": self.course.num_steps * self.course.batch_size / self.history.seconds,
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


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
