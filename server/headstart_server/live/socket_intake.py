"""A client's pictures and events on their way into windows: bounded, in order, decoded in the
sandbox.

Whoever reads the socket never waits here. A picture does not fit if too much waits to be decoded,
if too many came in a minute, if it cannot be decoded, or if memory is short. Those of its windows
that wait are discarded with it.

Pictures of encoded video build on those before. After one that was lost they are discarded until
the next key picture, and the windows that they fall into are lost too.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headstart.errors import MediaError
from headstart.live.session import LiveSession
from headstart.live.sources.pace import MAX_APART_US
from headstart.live.windows import FrameStatus
from headstart.media.annex_b import Codec
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart_client.wire import Media, MediaKind, unpack_events
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.pictures import EncodedVideo, Pictures, Stills
from headstart_server.live.window_intake import LossReason, WindowIntake
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


@dataclass(frozen=True)
class LostWindows:
    """In place of a picture that did not fit: its windows are lost."""

    time_us: int


@dataclass(frozen=True)
class Discontinuity:
    """In place of pictures that may be missing, whose windows are not known."""


@dataclass(frozen=True)
class MissingEvents:
    """In place of events that did not fit: the next picture lacks them."""


Waiting = Media | LostWindows | Discontinuity | MissingEvents


class SocketIntake(WindowIntake):
    """Used from one event loop only. `run` it in a task of its own."""

    def __init__(
        self,
        context: TenantContext,
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
        super().__init__(context, live, simulate=simulate)
        self._on_unreadable, self._sensor = on_unreadable, sensor
        self._pictures: Pictures = (
            Stills(context) if codec is None else EncodedVideo(context, codec)
        )
        self._is_cut = True
        """Whether the next picture that is decoded must build on none before."""
        self._keyless = -1
        """The newest window that was lost for want of a key picture."""
        self._bucket = Bucket(context.limits.live_frames_per_minute, self._clock())
        self._waiting: deque[Waiting] = deque()
        self._num_bytes = 0
        self._news = asyncio.Event()
        self._is_ending = False
        self.newest_us: int | None = None
        """The time of the newest picture that came; none before the first."""
        self._num_far, self._told_at = 0, FIRST_TOLD_LATE
        self._discarded_until_us = -1
        """Until then, what waits is discarded."""
        self._events: list[Events] = []
        self._lacks_events = False
        self._last_event_us = -MAX_TIME_US
        self._num_unreadable = 0

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
        if self.newest_us is not None and media.time_us <= self.newest_us:
            same = media.time_us == self.newest_us
            self._placed[FrameStatus.DOUBLED if same else FrameStatus.LATE] += 1
            self.cut()
            self._tell_if_far_ahead(self.newest_us, media.time_us)
            return
        self._num_far, self._told_at = 0, FIRST_TOLD_LATE
        self.newest_us = media.time_us
        if self._admit(media.time_us, lambda: self._flood(media)):
            self._append(media)

    def cut(self) -> None:
        """Pictures may be missing here: the next one builds on none before."""
        self._mark(Discontinuity())

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

    def _put_events(self, media: Media) -> None:
        if self._sensor is None:
            raise bad_request(
                "this camera was started without a sensor, so it sends no events; name it in start"
            )
        if self._is_full(media):
            self._mark(MissingEvents())
        else:
            self._append(media)

    def _mark(self, missing: Discontinuity | MissingEvents) -> None:
        """Note what is missing behind the last message: once, however often it is."""
        for one in reversed(self._waiting):
            if one == missing:
                return
            if not isinstance(one, Discontinuity | MissingEvents):
                break
        self._append(missing)

    def _append(self, one: Waiting) -> None:
        self._waiting.append(one)
        if isinstance(one, Media):
            self._num_bytes += len(one.payload)
        self._news.set()

    def _is_full(self, media: Media) -> bool:
        most = self._context.limits.max_live_waiting_bytes
        return len(self._waiting) >= MAX_WAITING or self._num_bytes + len(media.payload) > most

    def _flood(self, media: Media) -> LossReason | None:
        now_s = self._clock()
        if self._is_full(media) or self._bucket.wait_s(1, now_s) > 0:
            return LossReason.FLOOD
        self._bucket.take(1, now_s)
        return None

    def _lose(self, time_us: int) -> None:
        """Discard what waits of the windows, which are lost when what is left has been taken."""
        grid = self._grid_with(time_us)
        oldest = grid.holding(time_us).start
        # Until the window before them ends, what waits belongs to that one, too.
        needed_until_us = grid.stop_us(oldest - 1) if oldest else grid.origin_us
        kept: list[Waiting] = []
        # What waits before another loss belongs to windows that are older still.
        while self._waiting and not isinstance(self._waiting[-1], LostWindows):
            one = self._waiting.pop()
            if isinstance(one, Media) and one.time_us >= needed_until_us:
                self._discard(one)
            else:
                kept.append(one)
        self._waiting.extend(reversed(kept))
        self._append(LostWindows(time_us))
        if len(self._waiting) > MAX_LOSSES:
            raise too_much(
                "windows of this camera were lost faster than they can be counted; send less, or"
                " take longer windows"
            )

    def _discard(self, media: Media) -> None:
        self._num_bytes -= len(media.payload)
        if media.kind is not MediaKind.EVENTS:
            self._placed["discarded"] += 1

    async def _take(self, one: Waiting) -> None:
        match one:
            case Discontinuity():
                self._is_cut = True
            case MissingEvents():
                self._drop_events()
            case LostWindows():
                self._is_cut = True
                self._drop_events()
                self._live.lose(one.time_us)
            case Media() if one.time_us < self._discarded_until_us:
                self._drop_events()
                self._discard(one)
            case Media():
                try:
                    if one.kind is MediaKind.EVENTS:
                        await self._take_events(one)
                    else:
                        await self._take_picture(one)
                finally:
                    self._num_bytes -= len(one.payload)

    def _drop_events(self) -> None:
        """The next picture lacks events, so it has none."""
        self._events, self._lacks_events = [], True

    async def _take_events(self, media: Media) -> None:
        assert self._sensor is not None
        try:
            most = self._context.limits.max_events - sum(map(len, self._events))
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
            self._drop_events()
            self._tell_unreadable(bad_request(f"the events cannot be read: {error}"))

    async def _take_picture(self, media: Media) -> None:
        if (why := self._too_much_held()) is not None:
            self._lose_now(media, why)
            return
        try:
            if self._is_cut and not self._pictures.can_begin(media.payload):
                self._wait_for_key(media)
                return
            decoded = await self._pictures.decode(media.payload)
            self._is_cut = False
            pieces = None if self._lacks_events else self._events
            self._events, self._lacks_events = [], False
            await asyncio.to_thread(self._feed_decoded, decoded, media.time_us, pieces)
            self._num_unreadable = 0
        except (RefusedError, MediaError) as error:
            self._lose_now(media, LossReason.UNREADABLE)
            refusal = error if isinstance(error, RefusedError) else bad_request(str(error))
            self._tell_unreadable(refusal)
        self._hold(self._live.held_bytes)

    def _feed_decoded(
        self, decoded: DecodedPicture, time_us: int, pieces: list[Events] | None
    ) -> None:
        events: Events | None = None
        if self._sensor is not None and pieces is not None:
            events = Events.concatenate(pieces or [Events.empty(self._sensor)])
        self._feed(np.asarray(decoded.image.convert("RGB")), time_us, events)

    def _lose_now(self, media: Media, why: LossReason) -> None:
        """Lose the windows of the picture that is taken."""
        self.reasons[why] += 1
        self._placed["unreadable" if why is LossReason.UNREADABLE else "discarded"] += 1
        self._drop_events()
        self._is_cut = True
        grid = self._grid_with(media.time_us)
        self._discarded_until_us = grid.start_us(grid.holding(media.time_us).stop)
        self._live.lose(media.time_us)

    def _wait_for_key(self, media: Media) -> None:
        """Lose the windows of a picture that builds on others which are not there."""
        self._placed["discarded"] += 1
        self._drop_events()
        number = self._grid_with(media.time_us).holding(media.time_us).stop - 1
        if number > self._keyless:
            self._keyless = number
            self.reasons[LossReason.KEY] += 1
            self._live.lose(media.time_us)
            self._on_unreadable(_KEYLESS)

    def _tell_if_far_ahead(self, newest_us: int, time_us: int) -> None:
        """One picture with a time far ahead makes all after it late: say so, they are not few.

        What a client sends again after it resumed is late too, but not by so much for so long.
        """
        ahead_us = newest_us - time_us
        if ahead_us <= MAX_APART_US:
            return
        self._num_far += 1
        if self._num_far >= self._told_at:
            self._told_at *= 2
            self._on_unreadable(
                bad_request(
                    f"{self._num_far} pictures in a row came too late for any window: a picture"
                    f" before them has the time {newest_us} us, and this one's is"
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
