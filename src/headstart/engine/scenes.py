"""What each stream's camera saw last, to tell how much has changed since."""

from collections import OrderedDict
from threading import Lock

from headstart.drafters.port import StreamKey
from headstart.media.change import EventPicture
from headstart.media.events import Events

MAX_STREAMS = 4096


class Scenes:
    """The last event picture of each stream, bounded in streams. Thread-safe."""

    def __init__(self) -> None:
        self._pictures: OrderedDict[StreamKey, EventPicture] = OrderedDict()
        self._lock = Lock()

    def change(self, stream: StreamKey, events: Events | None) -> float:
        """From 0 to 1, how different these events are from the stream's last.

        Without events, or without a last, nothing is known to have changed.
        """
        if events is None or not len(events):
            return 0.0
        picture = EventPicture.of(events)
        with self._lock:
            last = self._pictures.pop(stream, None)
            self._pictures[stream] = picture
            while len(self._pictures) > MAX_STREAMS:
                self._pictures.popitem(last=False)
        return 0.0 if last is None else picture.change_from(last)
