"""The frames of a socket, counted before anything parses them.

A limit on messages counts neither control frames nor the parts of a message that never ends: six
bytes each, of which a megabyte takes seconds to parse. RFC 6455, section 5.2, has their layout.
"""

from collections.abc import Callable

from headstart_server.quota import Bucket

CONTROLS_A_SECOND = 10
"""Pings, pongs and closes of one socket, on average."""
CONTROLS_AT_ONCE = 40
FREE_FRAGMENTS = 64
"""So many parts may one message have, however short they are."""
FRAGMENT_BYTES = 1 << 10
"""Of more parts, each is to be so long on average."""
PIECE_BYTES = 16 << 10
PIECE_FRAMES = 16

_CONTINUATION, _CONTROL = 0x0, 0x8
_LENGTH_BYTES = {126: 2, 127: 8}
_MASK_BYTES = 4


class Frames:
    """What a client sends on one socket. Used from one event loop only."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._controls = Bucket(60 * CONTROLS_A_SECOND, clock(), CONTROLS_AT_ONCE)
        self._head = bytearray()
        self._num_left = 0
        """Bytes of the frame whose head was read."""
        self._ends_message = False
        self._num_fragments = self._num_bytes = 0
        """Of the message under way."""
        self.num_frames = 0
        self.excess = ""
        """What there was too much of, once there was."""

    def piece_of(self, held: bytes, start: int) -> int:
        """Where a piece ends that is parsed at once: with a message, or after some frames."""
        end, limit = start, min(len(held), start + PIECE_BYTES)
        last_frame = self.num_frames + PIECE_FRAMES
        while end < limit and not self.excess:
            if self._num_left:
                taken = min(self._num_left, limit - end)
                self._num_left -= taken
                end += taken
            else:
                taken = min(_head_bytes(self._head) - len(self._head), limit - end)
                self._head += held[end : end + taken]
                end += taken
                if len(self._head) < _head_bytes(self._head):
                    continue
                self._begin()
            if not self._num_left and (self._ends_message or self.num_frames == last_frame):
                break
        return end

    def _begin(self) -> None:
        first, second = self._head[:2]
        length = second & 0x7F
        num_length_bytes = _LENGTH_BYTES.get(length, 0)
        if num_length_bytes:
            length = int.from_bytes(self._head[2 : 2 + num_length_bytes], "big")
        self._head.clear()
        self._num_left = length
        self.num_frames += 1
        is_final, kind = bool(first & 0x80), first & 0x0F
        self._ends_message = is_final and kind < _CONTROL
        if kind >= _CONTROL:
            if self._controls.wait_s(1, self._clock()):
                self.excess = "too many control frames"
            self._controls.take(1, self._clock())
            return
        if kind != _CONTINUATION:
            self._num_fragments = self._num_bytes = 0
        self._num_fragments += 1
        if self._num_fragments > FREE_FRAGMENTS + self._num_bytes // FRAGMENT_BYTES:
            self.excess = "too many fragments of one message"
        self._num_bytes += length


def _head_bytes(head: bytearray) -> int:
    """How long a frame's head is, as far as its beginning tells."""
    if len(head) < 2:
        return 2
    return 2 + _LENGTH_BYTES.get(head[1] & 0x7F, 0) + (_MASK_BYTES if head[1] & 0x80 else 0)
