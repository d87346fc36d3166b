"""The settings of one training run."""

from dataclasses import dataclass
from math import cos, pi

from headstart_lab.errors import LabError


@dataclass(frozen=True)
class TrainConfig:
    """Steps of ``batch_size`` clips with ``num_questions`` each, at a rate that rises and falls."""

    num_steps: int
    # Training drives; a run sets it to the number of rendered ones.
    num_drives: int = 0
    batch_size: int = 8
    num_questions: int = 16
    # Single facts asked for beside the questions.
    num_drilled: int = 0
    learning_rate: float = 1e-3
    # How many of a clip's last pictures a step shows; the last `whole_share` of steps shows all.
    glance: int | None = None
    whole_share: float = 0.12
    lowest_share: float = 0.05
    warmup_share: float = 0.05
    weight_decay: float = 0.05
    max_gradient_norm: float = 1.0
    seed: int = 0
    # Held-out loss: how often over the run, on how many clips.
    num_examinations: int = 20
    num_examined: int = 16

    def __post_init__(self) -> None:
        if min(self.num_steps, self.batch_size, self.num_questions) < 1:
            raise LabError(f"{self} trains nothing; give at least 1 step, clip and question")

    def rate(self, step: int) -> float:
        """The learning rate of a step: a linear warm-up, then a cosine decay."""
        warmup = max(1, round(self.warmup_share * self.num_steps))
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        done = (step - warmup) / max(1, self.num_steps - warmup)
        share = self.lowest_share + (1 - self.lowest_share) * (1 + cos(pi * done)) / 2
        return self.learning_rate * share

    def num_glanced(self, step: int) -> int | None:
        """How many pictures of a clip this step shows; None means all of them."""
        return self.glance if step < (1 - self.whole_share) * self.num_steps else None

    def is_examined_after(self, step: int) -> bool:
        """Whether the held-out loss is measured after this step."""
        every = max(1, self.num_steps // max(1, self.num_examinations))
        return (step + 1) % every == 0 or step + 1 == self.num_steps
