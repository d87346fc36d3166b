"""The last event picture of each stream, to tell how much the scene has changed since."""

from threading import Lock

from headstart.media.change import EventPicture
from headstart.media.events import Events
from headstart.speculation.drafter import StreamKey
from headstart.speculation.fair_table import FairTable

MAX_STREAMS = 4096
FIRST_USUAL = 0.5  # between clips a second apart, on drives of the lab
WEIGHT_OF_LAST = 0.1  # in what is usual on a stream


class Scenes:
    """Bounded in streams; no tenant can push out another's. Thread-safe.

    A moving camera's pictures always differ from one clip to the next, so only a difference beyond
    the stream's usual one counts as change.
    """

    def __init__(self) -> None:
        self._last: FairTable[str, tuple[EventPicture, float]] = FairTable(MAX_STREAMS)
        self._lock = Lock()

    def change(self, stream: StreamKey, events: Events | None) -> float:
        """From 0 to 1, how different these events are from the stream's last.

        Without events, or on a new stream, the change is 0.
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
