"""One live camera of a tenant: its windows, its answers, and the client that listens to them.

Where its pictures come from, and for how long its answers are kept, is left to `SocketCamera` and
`SourceCamera`.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.errors import HeadstartError
from headstart.live.session import LiveSession
from headstart.live.standing import StandingQuestion
from headstart.live.when import WhenChanged
from headstart.live.window_question import WindowAnswer, WindowQuestion
from headstart_client.wire import CloseCode
from headstart_server import metrics
from headstart_server.live.answer_buffer import AnswerBuffer
from headstart_server.live.camera_resources import CameraResources
from headstart_server.live.comparison import Comparison
from headstart_server.live.messages import (
    CameraRequest,
    Message,
    answer_message,
    error_message,
    words_message,
)
from headstart_server.live.send_queue import SendQueue, close_code
from headstart_server.live.window_intake import WindowIntake
from headstart_server.refusal import RefusedError, bad_request

OnFailure = Callable[[Exception], None]
"""Is told of errors that are the server's own."""


class Camera:
    """Used from one event loop only. `close` gives everything back."""

    def __init__(
        self,
        resources: CameraResources,
        wanted: CameraRequest,
        kept: AnswerBuffer,
        on_failure: OnFailure,
    ) -> None:
        self._context, self._on_failure, self._kept = resources.context, on_failure, kept
        self.tenant, self.stream = resources.context.tenant, wanted.stream
        self.num_frames = resources.session.target.view.num_frames
        when = WhenChanged(floor_s=wanted.at_least_s) if wanted.when == "changed" else None
        self._live = LiveSession(resources.session, wanted.windows, when=when)
        self._standing: StandingQuestion | None = None
        self._comparison: Comparison | None = None
        if wanted.question is not None:
            if wanted.compare and resources.bare is not None:
                asked = WindowQuestion(wanted.question, wanted.max_tokens, wanted.json_schema)
                self._comparison = Comparison(resources.bare, asked, self._compared)
            self._standing = self._live.standing(
                wanted.question,
                max_tokens=wanted.max_tokens,
                schema=wanted.json_schema,
                on_shown=self._show if wanted.previews else None,
                on_answer=None if self._comparison is None else self._comparison.offer,
            )
        self._muted = 0
        """The answer whose words are left out, since some were missed."""
        self._asks: set[asyncio.Task[None]] = set()
        """Other questions under way, which end before the camera does."""
        self._queue: SendQueue | None = None
        self._final: tuple[Message, CloseCode] | None = None
        self._measured: dict[str, dict[str, int]] = {"frames": {}, "windows": {}}
        self._end_code = CloseCode.ENDED

    def _begin(self, intake: WindowIntake) -> None:
        self._intake = intake
        self._taking = asyncio.ensure_future(self._take_in())
        self._running = asyncio.ensure_future(self._run())

    @property
    def num_waiting(self) -> int:
        """Windows that have ended and whose answer is not there yet."""
        return 0 if self._standing is None else len(self._standing.held)

    @property
    def is_over(self) -> bool:
        """Whether no answer will come any more."""
        return self._final is not None

    @property
    def is_done(self) -> bool:
        """Whether the client has everything."""
        return self._final is not None and not len(self._kept)

    def attach(self, queue: SendQueue, number: int) -> None:
        """Send to this client from now on, beginning with the answers after ``number``."""
        if self._queue is not None:
            taken = "this camera is listened to over another connection, which has it now"
            self._queue.refuse(bad_request(taken))
        self._queue = queue
        self._muted = 0 if self._standing is None else self._standing.counts.asked
        for message in self._kept.after(number):
            queue.send(message)
        if self._final is not None:
            self._send_final(*self._final)

    def detach(self, queue: SendQueue) -> bool:
        """This client is gone; returns whether it was the one that listens."""
        if self._queue is not queue:
            return False
        self._queue = None
        for task in self._asks:
            task.cancel()
        return True

    async def drain(self) -> None:
        """Give the answers under way and no others, then end."""
        self._end_code = CloseCode.GOING_AWAY
        self._kept.stop_waiting()
        self._taking.cancel()
        if self._standing is not None:
            self._standing.end()  # windows that end from here on are not asked about
        self._live.end()
        await asyncio.gather(*self._asks, return_exceptions=True)
        await asyncio.wait((self._running,))

    def counts(self) -> Message:
        """What became of frames and windows so far."""
        live = self._live.counts
        frames = {str(placement): number for placement, number in live.frames.items()}
        for name, number in self._intake.placed.items():
            frames[str(name)] = frames.get(str(name), 0) + number
        windows = {
            "ended": live.windows,
            "asked": live.asked,
            "skipped": live.skipped,
            "dropped": live.dropped,
            "unread": live.unread,
            "lost": live.lost,
        }
        metrics.count_since(metrics.LIVE_FRAMES, frames, self._measured["frames"])
        metrics.count_since(metrics.LIVE_WINDOWS, windows, self._measured["windows"])
        self._measured = {"frames": frames, "windows": windows}
        reasons = {str(why): number for why, number in self._intake.reasons.items()}
        return {"type": "counts", "frames": frames, "windows": windows, "lost_for": reasons}

    def close(self) -> None:
        """End everything at once; what is being answered is cancelled."""
        for task in (self._taking, self._running, *self._asks):
            task.cancel()
        self.counts()
        self._live.close()
        self._intake.close()
        if self._comparison is not None:
            self._comparison.close()
        if self._queue is not None:
            self._queue.finish(self._end_code)

    async def _take_in(self) -> None:
        await self._intake.run()
        self._live.end()

    async def _run(self) -> None:
        tasks = {self._taking}
        if self._standing is not None:
            tasks.add(asyncio.ensure_future(self._answer_all(self._standing)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                if not task.cancelled():
                    task.result()
            await asyncio.gather(*self._asks, return_exceptions=True)
            self._send_final({"type": "ended"}, self._end_code)
        except Exception as error:
            self._fail(self._refusal_of(error))
        finally:
            for task in tasks:
                task.cancel()

    def _fail(self, refusal: RefusedError) -> None:
        self._live.close()
        self._send_final(error_message(refusal, is_last=True), close_code(refusal))

    def _refusal_of(self, error: Exception) -> RefusedError:
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, HeadstartError):
            return bad_request(str(error))
        if isinstance(error, ValueError):  # of vLLM's processors, over placeholders in a text
            said = " ".join(str(error).split())[:300]
            return bad_request(f"vLLM does not take the question: {said}")
        self._on_failure(error)
        failed = "the server failed, and its log has the cause; start again"
        return RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, failed)

    def _send_final(self, message: Message, code: CloseCode) -> None:
        self._final = message, code
        if self._queue is not None:
            self._queue.send(self.counts())
            self._queue.send(message)
            self._queue.finish(code)

    async def _answer_all(self, standing: StandingQuestion) -> None:
        async for answer in standing:
            await self._kept.wait_for_room()
            self._charge(answer)
            message = self._kept.add(answer_message(answer))
            self._given(answer, self._kept.number)
            if self._queue is not None:
                self._queue.send(message)

    def _given(self, answer: WindowAnswer, number: int) -> None:
        """An answer to the standing question has been given."""

    def _charge(self, answer: WindowAnswer) -> None:
        self._charge_tokens(answer.answer)
        metrics.count_live_answer(answer, self.tenant)

    def _charge_tokens(self, said: Answer) -> None:
        """What was computed: frames that were computed before have been charged before."""
        computed = said.num_prompt_tokens - said.num_cached_tokens + len(said.token_ids)
        self._context.admission.quota.charge(self.tenant, computed)

    def _compared(self, message: Message, said: Answer) -> None:
        self._charge_tokens(said)
        if self._queue is not None:
            self._queue.send_if_room(message)

    def _show(self, shown: Shown) -> None:
        number = 0 if self._standing is None else self._standing.counts.asked
        if self._queue is None or number == self._muted:
            return
        if self._queue.send_if_room(words_message(shown, number)):
            metrics.PREVIEWS.inc()
        else:
            self._muted = number

    def _warn(self, refusal: RefusedError, id: str | None = None) -> None:
        """Tell the client of a fault after which the camera goes on."""
        if self._queue is not None:
            self._queue.send_if_room(error_message(refusal, is_last=False, id=id))
