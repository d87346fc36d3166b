"""What `headstart collect` asks about without a folder: drives that the pair has not seen."""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from headstart.media.clip import Clip
from headstart_lab.errors import LabError
from headstart_lab.split import Split
from headstart_lab.workloads import ROTATING
from headstart_lab.world.drive import Drive
from headstart_research.bench.clip_stream import ClipStream

FIRST_DRIVE = 10_000
"""The pair was trained on the drives before it."""
FIRST_TEXT_DRIVE = 50_000
"""Of it and later ones only texts are made (`headstart_lab.texts`), so that no drive that was
collected from was read about before."""
SECONDS = 86_400


@dataclass(frozen=True)
class DriveStream:
    """The drive of a seed; it has no end, so it is called a day long."""

    seed: int

    @property
    def name(self) -> str:
        """By its seed."""
        return f"drive-{self.seed}"

    def count(self) -> int:
        """A day of clips."""
        return SECONDS

    def clips(
        self, num_frames: int, leave_out: Container[int] = frozenset()
    ) -> Iterator[tuple[int, Clip]]:
        """As `ClipStream.clips`; a clip is drawn with the 8 frames of the pair's training."""
        drive = Drive(self.seed)
        for number in range(self.count()):
            if number not in leave_out:
                yield number, drive.clip(number).clip


def drive_streams(num_drives: int, *, held_out: bool = False) -> tuple[list[ClipStream], list[str]]:
    """So many drives, and the questions that are asked about each of their clips.

    Held-out drives are for measuring: nothing is ever trained on them.
    """
    if held_out:
        seeds = Split.HELD_OUT.seeds(num_drives)
    else:
        if num_drives > FIRST_TEXT_DRIVE - FIRST_DRIVE:
            raise LabError(
                f"the lab has {FIRST_TEXT_DRIVE - FIRST_DRIVE} drives to collect from: ask for no"
                " more drives, and for more clips (--set)"
            )
        seeds = Split.TRAIN.seeds(num_drives, skip=FIRST_DRIVE)
    return [DriveStream(seed) for seed in seeds], [question.usual for question in ROTATING]
