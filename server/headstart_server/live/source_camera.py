"""A camera that the server reads itself, registered by its tenant.

Nobody has to listen: the newest answers are kept, and posted to a hook where there is one.
"""

import asyncio
import contextlib
import io
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from http import HTTPStatus

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from headstart.live.answer_log import row_of
from headstart.live.sinks.outbox import AnswerSink
from headstart.live.sources.source import Source
from headstart.live.window_question import WindowAnswer
from headstart_client.wire import CloseCode
from headstart_server.live.answer_buffer import AnswerBuffer
from headstart_server.live.camera import Camera, OnFailure
from headstart_server.live.camera_resources import CameraResources
from headstart_server.live.messages import Message, Registration
from headstart_server.live.source_intake import SourceIntake
from headstart_server.refusal import RefusedError

LOOK_S = 1.0
"""How often counts are sent, and the tenant's keys are checked."""
MAX_SIDE = 640
"""Of the newest picture, as people are given it."""
FRESH_S = 0.1
"""For so long the same picture is given: however many ask, few are encoded."""


class CameraState(StrEnum):
    """Whether the camera's pictures come."""

    CONNECTING = "connecting"
    """No picture has come yet."""
    LIVE = "live"
    LOST = "lost"
    """Pictures came; the server tries to connect again."""
    ENDED = "ended"


class Snapshot:
    """The newest picture of a camera for people: small, as JPEG. Used from one event loop only."""

    def __init__(self) -> None:
        self._made_s = -FRESH_S
        self._making: asyncio.Task[bytes] | None = None

    async def of(self, frame: NDArray[np.uint8]) -> bytes:
        """The frame, or the one before if that was asked for just now."""
        making, now_s = self._making, time.monotonic()
        if making is None or (making.done() and now_s - self._made_s >= FRESH_S):
            making = self._making = asyncio.ensure_future(asyncio.to_thread(_jpeg, frame))
            self._made_s = now_s
        return await asyncio.shield(making)  # others may wait for it


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    image = PIL.Image.fromarray(frame)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=85)
    return content.getvalue()


class SourceCamera(Camera):
    """Used from one event loop only. `close` ends it, and when `closed` is done nothing is left."""

    def __init__(
        self,
        resources: CameraResources,
        wanted: Registration,
        source: Source,
        hook: AnswerSink | None,
        on_failure: OnFailure,
        on_over: Callable[["SourceCamera"], None],
    ) -> None:
        """``on_over`` is called once, when no answer will come any more."""
        super().__init__(resources, wanted, AnswerBuffer(), on_failure)
        self.id = secrets.token_urlsafe(16)
        self._wanted, self._source, self._hook = wanted, source, hook
        self._created_s, self._snapshot = int(time.time()), Snapshot()
        self._pictures = SourceIntake(
            resources.context, self._live, source, simulate=wanted.simulate_events
        )
        self._begin(self._pictures)
        self._running.add_done_callback(lambda _: on_over(self))
        self._watching = asyncio.ensure_future(self._watch())
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done when the thread and the process have ended, and the hook has got what waits."""
        self._shutting = threading.Thread(target=self._shut, name=f"headstart end of {source.name}")

    @property
    def state(self) -> CameraState:
        if self.is_over:
            return CameraState.ENDED
        if self._pictures.newest is None:
            return CameraState.CONNECTING
        return CameraState.LOST if self._source.counts.lost_because else CameraState.LIVE

    def described(self) -> Message:
        counts, source = self.counts(), self._source.counts
        final, _ = self._final or ({"message": source.lost_because}, None)
        return {
            "id": self.id,
            "object": "headstart.camera",
            "created": self._created_s,
            "source": self._source.name,
            "stream": self.stream,
            "question": self._wanted.question,
            "window_s": self._wanted.window_s,
            "step_s": self._wanted.windows.step_s,
            "num_frames": self.num_frames,
            "state": str(self.state),
            "reason": final.get("message"),
            "reconnects": source.reconnects,
            "answers": {"given": self._kept.number, "kept": len(self._kept)},
            **{name: counts[name] for name in ("frames", "windows", "lost_for")},
            "hook": None if self._hook is None else asdict(self._hook.counts),
        }

    async def picture(self) -> bytes:
        """The newest picture as JPEG, made small; raises a refusal if there is none."""
        if (newest := self._pictures.newest) is None:
            none = f"no picture: this camera is {self.state}; ask again later"
            raise RefusedError(HTTPStatus.NOT_FOUND, none)
        return await self._snapshot.of(newest)

    def stop(self) -> None:
        """End it now; what is being answered is cancelled."""
        if not self.is_over:
            self._send_final({"type": "ended"}, CloseCode.ENDED)
        self.close()

    def close(self) -> None:
        """End everything at once. The thread and the process that read it end a little later."""
        super().close()
        self._watching.cancel()
        if self._shutting.ident is None:
            self._shutting.start()

    def _shut(self) -> None:
        """In a thread of its own: both may take seconds."""
        self._pictures.shut()
        if self._hook is not None:
            self._hook.close()
        with contextlib.suppress(RuntimeError):  # the server has ended, and its event loop with it
            self._loop.call_soon_threadsafe(self.closed.set_result, None)

    def _given(self, answer: WindowAnswer, number: int) -> None:
        if self._hook is not None:
            self._hook.post({**row_of(answer), "camera": self.id, "number": number})

    async def _watch(self) -> None:
        told = self.counts()
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._context.admission.has_tenant(self.tenant):
                gone = "no key of this camera's tenant is valid any more"
                self._fail(RefusedError(HTTPStatus.UNAUTHORIZED, gone))
                self._running.cancel()
                return
            counts = self.counts()
            if counts != told and self._queue is not None and self._queue.send_if_room(counts):
                told = counts
