"""The settings of one training run of the pair."""

from dataclasses import dataclass

from headstart_lab.errors import LabError
from headstart_research.training.schedule import TrainSchedule


@dataclass(frozen=True)
class TrainConfig(TrainSchedule):
    """Steps of ``batch_size`` clips with ``num_questions`` each."""

    # Training drives; a run sets it to the number of rendered ones.
    num_drives: int = 0
    num_questions: int = 16
    # Single facts asked for beside the questions.
    num_drilled: int = 0
    # How many of a clip's last pictures a step shows; the last `whole_share` of steps shows all.
    glance: int | None = None
    whole_share: float = 0.12
    # Clips of which the held-out loss is measured.
    num_examined: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_questions < 1:
            raise LabError(f"{self} trains nothing; give at least 1 question")

    def num_glanced(self, step: int) -> int | None:
        """How many pictures of a clip this step shows; None means all of them."""
        return self.glance if step < (1 - self.whole_share) * self.num_steps else None
