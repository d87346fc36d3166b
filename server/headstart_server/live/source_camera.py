"""A camera that the server reads itself, registered by its tenant.

Nobody has to listen: the newest answers are kept, and posted to a hook where there is one.
"""

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from http import HTTPStatus

from headstart.live.answer_log import row_of
from headstart.live.sinks.outbox import AnswerSink
from headstart.live.sources.source import Source
from headstart.live.window_question import WindowAnswer
from headstart_client.wire import CloseCode
from headstart_server.live.camera import Camera
from headstart_server.live.failures import OnFailure
from headstart_server.live.kept_answers import NewestAnswers
from headstart_server.live.messages import Message, Registration
from headstart_server.live.places import Place
from headstart_server.live.snapshot import Snapshot
from headstart_server.live.source_intake import SourceIntake
from headstart_server.refusal import RefusedError

LOOK_S = 1.0
"""How often counts are sent, and the tenant's keys are checked."""


class CameraState(StrEnum):
    """Whether the camera's pictures come."""

    CONNECTING = "connecting"
    """No picture has come yet."""
    LIVE = "live"
    LOST = "lost"
    """Pictures came; the server tries to connect again."""
    ENDED = "ended"


class SourceCamera(Camera):
    """Used from one event loop only. `close` ends it, and when `closed` is done nothing is left."""

    def __init__(
        self,
        place: Place,
        wanted: Registration,
        source: Source,
        hook: AnswerSink | None,
        on_failure: OnFailure,
        on_over: Callable[["SourceCamera"], None],
    ) -> None:
        """``on_over`` is called once, when no answer will come any more."""
        super().__init__(place, wanted, NewestAnswers(), on_failure)
        self.id = secrets.token_urlsafe(16)
        self._wanted, self._name, self._hook = wanted, source.name, hook
        self._created_s, self._snapshot = int(time.time()), Snapshot()
        self._pictures = SourceIntake(
            place.gate, self._live, source, simulate=wanted.simulate_events
        )
        self._begin(self._pictures)
        self._running.add_done_callback(lambda _: on_over(self))
        self._watching = asyncio.ensure_future(self._watch())
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done when the thread and the process have ended, and the hook has got what waits."""
        self._shutting = threading.Thread(target=self._shut, name=f"headstart end of {self._name}")

    @property
    def state(self) -> CameraState:
        """As of now."""
        if self.is_over:
            return CameraState.ENDED
        if self._pictures.newest is None:
            return CameraState.CONNECTING
        return CameraState.LOST if self._pictures.source.lost_because else CameraState.LIVE

    def described(self) -> Message:
        """The camera as its tenant sees it."""
        source, counts = self._pictures.source, self.counts()
        return {
            "id": self.id,
            "object": "headstart.camera",
            "created": self._created_s,
            "source": self._name,
            "stream": self.stream,
            "question": self._wanted.question,
            "window_s": self._wanted.window_s,
            "step_s": self._wanted.windows.step_s,
            "num_frames": self.num_frames,
            "state": str(self.state),
            "reason": self._reason(),
            "reconnects": source.reconnects,
            "answers": {"given": self._kept.number, "kept": len(self._kept)},
            **{name: counts[name] for name in ("frames", "windows", "lost_for")},
            "hook": None if self._hook is None else asdict(self._hook.counts),
        }

    async def picture(self) -> bytes:
        """The newest picture as JPEG, made small; raises a refusal if there is none."""
        if (newest := self._pictures.newest) is None:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, f"no picture: this camera is {self.state}; ask again later"
            )
        return await self._snapshot.of(newest)

    def stop(self) -> None:
        """End it now; what is being answered is cancelled."""
        if not self.is_over:
            self._tell_final({"type": "ended"}, CloseCode.ENDED)
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
            if not self._gate.entrance.has_tenant(self.tenant):
                self._fail(
                    RefusedError(
                        HTTPStatus.UNAUTHORIZED, "no key of this camera's tenant is valid any more"
                    )
                )
                self._running.cancel()
                return
            counts = self.counts()
            if counts != told and self._outgoing is not None and self._outgoing.mention(counts):
                told = counts

    def _reason(self) -> object:
        """Why it has ended, or is lost; none if there is nothing to say."""
        if self._final is not None:
            return self._final[0].get("message")
        return self._pictures.source.lost_because
