"""Which drives are for training and which are only ever measured on."""

from enum import Enum

from headstart.errors import LabError


class Split(Enum):
    """Disjoint ranges of seeds, fixed once for all."""

    TRAIN = range(90_000)
    HELD_OUT = range(90_000, 100_000)

    def seeds(self, num: int, skip: int = 0) -> range:
        """The first ``num`` drives of the split, after ``skip``."""
        if not 0 <= skip <= skip + num <= len(self.value):
            raise LabError(
                f"{self.name.lower()} has {len(self.value)} drives; ask for fewer than that"
            )
        seeds: range = self.value[skip : skip + num]
        return seeds
