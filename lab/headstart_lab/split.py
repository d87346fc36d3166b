"""The split into training drives and held-out drives."""

from enum import Enum

from headstart_lab.errors import LabError


class Split(Enum):
    """Disjoint ranges of seeds; the committed pair was trained with these."""

    TRAIN = range(90_000)
    HELD_OUT = range(90_000, 100_000)

    def seeds(self, num: int, skip: int = 0) -> range:
        """The seeds of ``num`` drives of the split, after the first ``skip``."""
        if not 0 <= skip <= skip + num <= len(self.value):
            raise LabError(
                f"{self.name.lower()} has {len(self.value)} drives; ask for fewer than that"
            )
        seeds: range = self.value[skip : skip + num]
        return seeds
