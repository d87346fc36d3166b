"""How long a training run is, and how fast it learns at each step."""

from dataclasses import dataclass
from math import cos, pi

from headstart.errors import TrainingError


@dataclass(frozen=True)
class TrainSchedule:
    """Steps of ``batch_size`` examples, at a rate that rises and falls."""

    num_steps: int
    batch_size: int = 8
    learning_rate: float = 1e-3
    lowest_share: float = 0.05
    warmup_share: float = 0.05
    weight_decay: float = 0.05
    max_gradient_norm: float = 1.0
    seed: int = 0
    # Held-out loss: how often over the run.
    num_examinations: int = 20

    def __post_init__(self) -> None:
        if min(self.num_steps, self.batch_size) < 1:
            raise TrainingError(f"{self} trains nothing: give at least 1 step and 1 example")

    def rate(self, step: int) -> float:
        """The learning rate of a step: a linear warm-up, then a cosine decay."""
        warmup = max(1, round(self.warmup_share * self.num_steps))
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        done = (step - warmup) / max(1, self.num_steps - warmup)
        share = self.lowest_share + (1 - self.lowest_share) * (1 + cos(pi * done)) / 2
        return self.learning_rate * share

    def is_examined_after(self, step: int) -> bool:
        """Whether the held-out loss is measured after this step."""
        every = max(1, self.num_steps // max(1, self.num_examinations))
        return (step + 1) % every == 0 or step + 1 == self.num_steps
