"""A camera's pictures and events on their way into its windows: bounded, in order, decoded in the
sandbox.

Whoever reads the socket never waits here. What does not fit is not cut out of a window: all windows
that it falls into are lost, whole, and counted by the reason. The rule:

- a picture does not fit if too much waits to be decoded, if too many came in a minute, if it cannot
  be decoded, or if memory is short;
- where a window begins, the clock and the tenant's rates are checked, and a request is charged;
- pictures of a lost window are discarded until the next window begins, those that wait as well.

Pictures of encoded video build on those before. After one that was lost they are discarded until
the next key picture, and the windows that they fall into are lost too.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from headstart.errors import MediaError
from headstart.live.session import LiveSession
from headstart.live.sources.pace import MAX_APART_US
from headstart.live.windows import Placement, WindowGrid
from headstart.media.annex_b import Codec
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart_client.wire import Media, MediaKind, unpack_events
from headstart_events.live.events_beside import SmallSimulator
from headstart_server.live.frame_memory import FrameMemory
from headstart_server.live.gate import Gate
from headstart_server.live.losses import Cut, Gap, Loss, Why
from headstart_server.live.pictures import EncodedVideo, Pictures, Stills
from headstart_server.live.window_admission import WindowAdmission
from headstart_server.media.decoder import DecodedPicture
from headstart_server.quota import Bucket
from headstart_server.refusal import RefusedError, bad_request, too_much

MAX_WAITING = 1024
"""Messages that wait to be decoded, besides the limit on their bytes."""
MAX_LOSSES = 8192
"""The most that waits, lost windows included: with more a client keeps the server busy losing."""
MAX_UNREADABLE = 16
"""So many pictures or events in a row that cannot be read are no camera any more."""
FIRST_TOLD_LATE = 16
"""The client is told after so many pictures in a row that are far too late, then at twice as many,
and so on."""
Waiting = Media | Loss | Cut | Gap


class Intake:
    """Used from one event loop only. `run` it in a task of its own."""

    def __init__(
        self,
        gate: Gate,
        live: LiveSession,
        on_unreadable: Callable[[RefusedError], None],
        *,
        simulate: bool = False,
        sensor: SensorSize | None = None,
        codec: Codec | None = None,
    ) -> None:
        """``on_unreadable`` is told of each picture or events that cannot be read.

        With a ``codec`` the pictures are encoded video.
        """
        self._gate, self._live, self._on_unreadable = gate, live, on_unreadable
        self._simulator = SmallSimulator() if simulate else None
        self._sensor = sensor
        self._pictures: Pictures = Stills(gate) if codec is None else EncodedVideo(gate, codec)
        self._is_cut = True
        """Whether the next picture that is decoded must build on none before."""
        self._keyless = -1
        """The newest window that was lost for want of a key picture."""
        self._bucket = Bucket(gate.limits.live_frames_per_minute, time.monotonic())
        self._waiting: deque[Waiting] = deque()
        self._num_bytes = 0
        self._news = asyncio.Event()
        self._is_ending = False
        self._grid: WindowGrid | None = None
        self._newest_us = -1
        self._num_far, self._told_at = 0, FIRST_TOLD_LATE
        self._admission = WindowAdmission(gate, live.windows)
        self._refused_until_us = -1
        """Until then, what comes is discarded."""
        self._discarded_until_us = -1
        """Until then, what waits is discarded."""
        self._events: list[Events] = []
        self._lacks_events = False
        self._last_event_us = -MAX_TIME_US
        self._num_unreadable = 0
        self._memory = FrameMemory(gate, live)
        self.placed: Counter[str] = Counter()
        """Pictures that were not decoded: late, doubled, discarded."""
        self.reasons: Counter[Why] = Counter()
        """Why windows were lost; one reason for all that were lost at once."""

    @property
    def newest_us(self) -> int | None:
        """The time of the newest picture that came; none before the first."""
        return None if self._newest_us < 0 else self._newest_us

    def put(self, media: Media) -> None:
        """Take a message, or lose its windows. Never waits."""
        if media.kind is MediaKind.EVENTS:
            self._put_events(media)
            return
        if media.kind is not self._pictures.kind:
            raise bad_request(
                f"this camera was started to send {self._pictures.kind.name.lower()} messages (kind"
                f" {self._pictures.kind}), not kind {media.kind}; start has codec for encoded"
                " video, and no codec for pictures"
            )
        if media.time_us <= self._newest_us:
            same = media.time_us == self._newest_us
            self.placed[Placement.DOUBLED if same else Placement.LATE] += 1
            self.cut()
            self._tell_if_far_ahead(media.time_us)
            return
        self._num_far, self._told_at = 0, FIRST_TOLD_LATE
        self._newest_us = media.time_us
        if self._grid is None:
            self._grid = self._live.windows.grid(media.time_us)
        if media.time_us < self._refused_until_us:
            self.placed["discarded"] += 1
        elif (why := self._refusal(media)) is not None:
            self.placed["discarded"] += 1
            self._lose_what_waits(self._grid, media.time_us, why)
        else:
            self._append(media)

    def cut(self) -> None:
        """Pictures may be missing here: the next one builds on none before."""
        self._mark(Cut())

    def end(self) -> None:
        """No more comes: `run` returns once all that waits is taken."""
        self._is_ending = True
        self._news.set()

    async def run(self) -> None:
        """Take what waits, one after the other, until the end. Raises a refusal."""
        try:
            while True:
                while self._waiting:
                    await self._take(self._waiting.popleft())
                if self._is_ending:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self._pictures.close()

    def close(self) -> None:
        """Give back the memory that is counted for the camera's frames."""
        self._memory.close()

    def _put_events(self, media: Media) -> None:
        if self._sensor is None:
            raise bad_request(
                "this camera was started without a sensor, so it sends no events; name it in start"
            )
        if not self._is_full(media):
            self._append(media)
        else:
            self._mark(Gap())

    def _mark(self, missing: Cut | Gap) -> None:
        """Note what is missing behind the last message: once, however often it is."""
        for one in reversed(self._waiting):
            if one == missing:
                return
            if not isinstance(one, Cut | Gap):
                break
        self._waiting.append(missing)
        self._news.set()

    def _append(self, media: Media) -> None:
        self._waiting.append(media)
        self._num_bytes += len(media.payload)
        self._news.set()

    def _is_full(self, media: Media) -> bool:
        most = self._gate.limits.max_live_waiting_bytes
        return len(self._waiting) >= MAX_WAITING or self._num_bytes + len(media.payload) > most

    def _refusal(self, media: Media) -> Why | None:
        """Why a picture does not fit; none if it does."""
        now_s = time.monotonic()
        if self._is_full(media) or self._bucket.wait_s(1, now_s) > 0:
            return Why.FLOOD
        self._bucket.take(1, now_s)
        return None if self._grid is None else self._admission.refusal(self._grid, media.time_us)

    def _lose_what_waits(self, grid: WindowGrid, time_us: int, why: Why) -> None:
        """Lose the windows of a picture that has just come."""
        self.reasons[why] += 1
        lost = grid.holding(time_us)
        self._refused_until_us = grid.start_us(lost.stop)
        # Until then, what waits belongs to the window before them, too.
        needed_until_us = grid.stop_us(lost.start - 1) if lost.start else grid.origin_us
        kept: list[Waiting] = []
        # What waits before another loss belongs to windows that are older still.
        while self._waiting and not isinstance(self._waiting[-1], Loss):
            one = self._waiting.pop()
            if isinstance(one, Media) and one.time_us >= needed_until_us:
                self._discard(one)
            else:
                kept.append(one)
        self._waiting.extend(reversed(kept))
        self._waiting.append(Loss(time_us))
        self._news.set()
        if len(self._waiting) > MAX_LOSSES:
            raise too_much(
                "windows of this camera were lost faster than they can be counted; send less, or"
                " take longer windows"
            )

    def _discard(self, media: Media) -> None:
        self._num_bytes -= len(media.payload)
        if media.kind is not MediaKind.EVENTS:
            self.placed["discarded"] += 1

    async def _take(self, one: Waiting) -> None:
        if isinstance(one, Loss | Cut):
            self._is_cut = True
        if isinstance(one, Cut):
            return
        if isinstance(one, Loss | Gap):
            self._events, self._lacks_events = [], True
            if isinstance(one, Loss):
                self._live.lose(one.time_us)
            return
        if one.time_us < self._discarded_until_us:
            self._events, self._lacks_events = [], True
            self._discard(one)
            return
        try:
            if one.kind is MediaKind.EVENTS:
                await self._take_events(one)
            else:
                await self._take_picture(one)
        finally:
            self._num_bytes -= len(one.payload)

    async def _take_events(self, media: Media) -> None:
        if self._sensor is None:
            return
        try:
            most = self._gate.limits.max_events - sum(map(len, self._events))
            events = await asyncio.to_thread(unpack_events, media.payload, self._sensor, most)
            if len(events):
                if events.t[0] < self._last_event_us:
                    raise MediaError(
                        f"they go back from {self._last_event_us} to {events.t[0]} us; send them"
                        " in order"
                    )
                self._last_event_us = int(events.t[-1])
            self._events.append(events)
        except MediaError as error:
            self._events, self._lacks_events = [], True
            self._tell_unreadable(bad_request(f"the events cannot be read: {error}"))

    async def _take_picture(self, media: Media) -> None:
        try:
            self._gate.room.check(self._gate.tenant)
        except RefusedError:
            self._lose_now(media, Why.MEMORY)
            return
        try:
            if self._is_cut and not self._pictures.can_begin(media.payload):
                self._wait_for_key(media)
                return
            decoded = await self._pictures.decode(media.payload)
            self._is_cut = False
            pieces = None if self._lacks_events else self._events
            self._events, self._lacks_events = [], False
            await asyncio.to_thread(self._feed, decoded, media.time_us, pieces)
            self._num_unreadable = 0
        except (RefusedError, MediaError) as error:
            self._lose_now(media, Why.UNREADABLE)
            refusal = error if isinstance(error, RefusedError) else bad_request(str(error))
            self._tell_unreadable(refusal)
        self._memory.count()

    def _feed(self, decoded: DecodedPicture, time_us: int, pieces: list[Events] | None) -> None:
        """In a thread: large pictures and many events take a while."""
        frame = np.asarray(decoded.image.convert("RGB"))
        events: Events | None = None
        if self._simulator is not None:
            events = self._simulator.see(time_us, frame)
        elif self._sensor is not None and pieces is not None:
            events = Events.concatenate(pieces or [Events.empty(self._sensor)])
        self._live.feed(frame, time_us, events)

    def _lose_now(self, media: Media, why: Why) -> None:
        """Lose the windows of the picture that is taken."""
        self.reasons[why] += 1
        self.placed["unreadable" if why is Why.UNREADABLE else "discarded"] += 1
        self._events, self._lacks_events = [], True
        self._is_cut = True
        if self._grid is not None:
            self._discarded_until_us = self._grid.start_us(self._grid.holding(media.time_us).stop)
        self._live.lose(media.time_us)

    def _wait_for_key(self, media: Media) -> None:
        """Lose the windows of a picture that builds on others which are not there."""
        self.placed["discarded"] += 1
        self._events, self._lacks_events = [], True
        number = -1 if self._grid is None else self._grid.holding(media.time_us).stop - 1
        if number > self._keyless:
            self._keyless = number
            self.reasons[Why.KEY] += 1
            self._live.lose(media.time_us)
            self._on_unreadable(_KEYLESS)

    def _tell_if_far_ahead(self, time_us: int) -> None:
        """One picture with a time far ahead makes all after it late: say so, they are not few.

        What a client sends again after it resumed is late too, but not by so much for so long.
        """
        ahead_us = self._newest_us - time_us
        if ahead_us <= MAX_APART_US:
            return
        self._num_far += 1
        if self._num_far >= self._told_at:
            self._told_at *= 2
            self._on_unreadable(
                bad_request(
                    f"{self._num_far} pictures in a row came too late for any window: a picture"
                    f" before them has the time {self._newest_us} us, and this one's is"
                    f" {ahead_us / 1e6:.0f} s earlier. Send times that go on from there, or start"
                    " the camera again"
                )
            )

    def _tell_unreadable(self, refusal: RefusedError) -> None:
        self._num_unreadable += 1
        if self._num_unreadable >= MAX_UNREADABLE:
            raise bad_request(
                f"{MAX_UNREADABLE} messages in a row could not be read, the last one because"
                f" {refusal.message}; correct them and start again"
            )
        self._on_unreadable(refusal)


_KEYLESS = bad_request(
    "nothing can be decoded before the next key picture that brings its parameter sets: the camera"
    " has just begun or resumed, or a picture before was lost or out of order (send no B-frames)"
)
