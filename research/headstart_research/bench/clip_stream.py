"""A stream of clips: one recording, cut into clips in the order in which they were recorded."""

from collections.abc import Container, Iterator
from typing import Protocol

from headstart.media.clip import Clip


class ClipStream(Protocol):
    """Clips by number, read as they are asked for; the same at every call."""

    @property
    def name(self) -> str:
        """What tells it from the other streams of its source, on every machine."""

    def count(self) -> int:
        """One more than the highest number of a clip. May read the recording's times."""

    def clips(
        self, num_frames: int, leave_out: Container[int] = frozenset()
    ) -> Iterator[tuple[int, Clip]]:
        """Each clip and its number, in order, with at most ``num_frames`` frames.

        Clips whose number is in ``leave_out`` are not decoded, nor are seconds without a frame.
        """
