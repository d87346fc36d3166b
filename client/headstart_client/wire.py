"""What both ends of a live socket agree on: names, close codes, and the layout of media.

docs/live-protocol.md describes the protocol.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, Events, SensorSize

PATH = "/v1/live"
SUBPROTOCOL = "headstart.live.v1"
KEY_PREFIX = "headstart.key."
"""Before a key in the list of subprotocols: a browser cannot send the header of a key."""
WINDOW_S = 2.0
"""Length of a window where none is named, as of `headstart watch`."""
HEADER = struct.Struct(">Bq")
"""Before a payload: its kind, and its time in microseconds."""
EVENT = np.dtype([("t", "<i8"), ("x", "<u2"), ("y", "<u2"), ("p", "u1")])
"""One event, packed: 13 bytes."""


class MediaKind(IntEnum):
    """What a binary message holds."""

    PICTURE = 1
    """A frame: JPEG, PNG or WebP. The time is the frame's."""
    ENCODED = 2
    """A frame as an encoder of H.264 or H.265 gives it. The time is the frame's."""
    EVENTS = 3
    """Events since the frame before. The time is that of the frame that comes next, or earlier."""


class CloseCode(IntEnum):
    """How the server ends a socket."""

    ENDED = 1000
    GOING_AWAY = 1001
    """The server is being stopped."""
    REFUSED = 1008
    """The client can correct what it sent; trying the same again is no use."""
    FAILED = 1011
    TRY_LATER = 1013


@dataclass(frozen=True)
class Media:
    """One binary message."""

    kind: MediaKind
    time_us: int
    payload: bytes

    def pack(self) -> bytes:
        """The message."""
        return HEADER.pack(self.kind, self.time_us) + self.payload

    @classmethod
    def parse(cls, message: bytes) -> "Media":
        """Read a message of unknown quality; raises `MediaError`."""
        if len(message) <= HEADER.size:
            raise MediaError(
                f"a binary message is {HEADER.size} bytes and a payload; this one has"
                f" {len(message)} bytes"
            )
        kind, time_us = HEADER.unpack_from(message)
        if kind not in set(MediaKind):
            known = ", ".join(f"{each} ({each.name.lower()})" for each in MediaKind)
            raise MediaError(f"a binary message begins with its kind, one of {known}; not {kind}")
        if not 0 <= time_us < MAX_TIME_US:
            raise MediaError(f"a time is 0 to {MAX_TIME_US - 1} microseconds, not {time_us}")
        return cls(MediaKind(kind), time_us, message[HEADER.size :])


def pack_events(events: Events) -> bytes:
    """The payload of a message of events."""
    rows = np.empty(len(events), EVENT)
    for name in ("t", "x", "y", "p"):
        rows[name] = getattr(events, name)
    return rows.tobytes()


def unpack_events(payload: bytes, sensor: SensorSize, max_events: int) -> Events:
    """Read a payload of unknown quality, and check every value; raises `MediaError`."""
    if len(payload) % EVENT.itemsize:
        raise MediaError(
            f"events are {EVENT.itemsize} bytes each, and {len(payload)} bytes are no whole number"
            " of them: send t (8 bytes), x (2), y (2) and p (1), little-endian, without gaps"
        )
    rows: NDArray[np.void] = np.frombuffer(payload, EVENT)
    if len(rows) > max_events:
        raise MediaError(f"{len(rows)} events in one message; send {max_events} at most")
    x, y, t, p = (np.ascontiguousarray(rows[name]) for name in ("x", "y", "t", "p"))
    return Events.checked(x, y, t, p, sensor)
