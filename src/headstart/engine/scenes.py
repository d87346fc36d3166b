"""What each stream's camera saw last, to tell how much has changed since."""

from threading import Lock

from headstart.drafters.port import StreamKey
from headstart.drafting.fair_table import FairTable
from headstart.media.change import EventPicture
from headstart.media.events import Events

MAX_STREAMS = 4096
FIRST_USUAL = 0.5  # between clips a second apart, on drives of the lab
WEIGHT_OF_LAST = 0.1  # in what is usual on a stream


class Scenes:
    """The last event picture of each stream, bounded in streams, fairly. Thread-safe.

    On a camera that moves, pictures differ from one clip to the next without any news in it; so
    only what is beyond the stream's usual difference counts as change.
    """

    def __init__(self) -> None:
        self._last: FairTable[str, tuple[EventPicture, float]] = FairTable(MAX_STREAMS)
        self._lock = Lock()

    def change(self, stream: StreamKey, events: Events | None) -> float:
        """From 0 to 1, how different these events are from the stream's last.

        Without events, or without a last, nothing is known to have changed.
        """
        if events is None or not len(events):
            return 0.0
        picture = EventPicture.of(events)
        with self._lock:
            last, usual = self._last.get(stream.tenant, stream.stream) or (None, FIRST_USUAL)
            difference = 0.0 if last is None else picture.change_from(last)
            if last is not None:
                usual += WEIGHT_OF_LAST * (difference - usual)
            self._last.put(stream.tenant, stream.stream, (picture, usual))
        return max(0.0, difference - usual)
