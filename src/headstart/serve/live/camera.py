"""One live camera of a tenant: its windows, its answers, and the client that listens to them.

It outlives a broken connection for a while. Answers are kept until the client says that it has
them, so that none is lost and none comes twice.
"""

import asyncio
import secrets
from collections.abc import Callable
from http import HTTPStatus

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.client.wire import CloseCode, Media
from headstart.engine.session import Session
from headstart.errors import HeadstartError
from headstart.live.session import LiveSession
from headstart.live.standing import Standing
from headstart.live.when import WhenChanged
from headstart.live.window_answer import WindowAnswer
from headstart.live.window_question import WindowQuestion
from headstart.serve import metrics
from headstart.serve.live.comparison import Comparison
from headstart.serve.live.gate import Gate
from headstart.serve.live.intake import Intake
from headstart.serve.live.kept_answers import MAX_KEPT, KeptAnswers
from headstart.serve.live.messages import (
    Ask,
    Message,
    Start,
    answer_message,
    error_message,
    grammar_of,
    words_message,
)
from headstart.serve.live.outgoing import Outgoing
from headstart.serve.refusal import RefusedError, bad_request, too_much

MAX_ASKS = 4
"""Questions of one client that are answered at the same time."""


class Camera:
    """Used from one event loop only. `start` it there; `close` gives everything back."""

    def __init__(
        self,
        gate: Gate,
        session: Session,
        start: Start,
        on_failure: Callable[[Exception], None],
        bare: Session | None = None,
    ) -> None:
        """``on_failure`` is told of errors that are the server's own.

        Where the client wants to compare, vLLM alone is asked too, over ``bare``.
        """
        self.tenant, self.stream = gate.tenant, start.stream
        self.token = secrets.token_urlsafe(32)
        self._gate, self._on_failure = gate, on_failure
        self._num_frames = session.target.view.num_frames
        when = WhenChanged(floor_s=start.at_least_s) if start.when == "changed" else None
        self._live = LiveSession(session, start.windows, when=when)
        self._intake = Intake(
            gate,
            self._live,
            self._mention,
            simulate=start.simulate_events,
            sensor=start.sensor_size,
            codec=start.codec,
        )
        self._standing: Standing | None = None
        self._comparison: Comparison | None = None
        if start.question is not None:
            if start.compare and bare is not None:
                asked = WindowQuestion(start.question, start.max_tokens, start.json_schema)
                self._comparison = Comparison(bare, asked, self._compared)
            self._standing = self._live.standing(
                start.question,
                max_tokens=start.max_tokens,
                schema=start.json_schema,
                on_shown=self._show if start.previews else None,
                on_answer=None if self._comparison is None else self._comparison.offer,
            )
        self._kept = KeptAnswers()
        self._muted = 0
        """The answer whose words are left out, since some were missed."""
        self._asks: set[asyncio.Task[None]] = set()
        self._outgoing: Outgoing | None = None
        self._final: tuple[Message, CloseCode] | None = None
        self._measured_frames: dict[str, int] = {}
        self._measured_windows: dict[str, int] = {}
        self._taking = asyncio.ensure_future(self._take_in())
        self._running = asyncio.ensure_future(self._run())
        self._end_code = CloseCode.ENDED

    @property
    def is_over(self) -> bool:
        """Whether no answer will come any more."""
        return self._final is not None

    @property
    def is_done(self) -> bool:
        """Whether the client has everything."""
        return self._final is not None and not self._kept

    def attach(self, outgoing: Outgoing, number: int, *, is_new: bool) -> None:
        """Send to this client from now on, beginning with the answers after ``number``."""
        self._kept.acknowledge(number)
        if not is_new:
            self._intake.cut()  # the client may have sent what never came
        if self._outgoing is not None:
            taken = "this camera was resumed over another connection, which has it now"
            refusal = bad_request(taken)
            self._outgoing.tell(error_message(refusal, is_last=True))
            self._outgoing.finish(CloseCode.REFUSED)
        self._outgoing = outgoing
        self._muted = 0 if self._standing is None else self._standing.counts.asked
        outgoing.tell(self._started(is_new))
        for message in self._kept:
            outgoing.tell(message)
        if self._final is not None:
            self._tell_final(*self._final)

    def detach(self, outgoing: Outgoing) -> bool:
        """This client is gone; returns whether it was the one that listens."""
        if self._outgoing is not outgoing:
            return False
        self._outgoing = None
        for task in self._asks:
            task.cancel()
        return True

    def put(self, media: Media) -> None:
        """Take a picture or events."""
        if self._final is None:
            self._intake.put(media)

    def acknowledge(self, number: int) -> None:
        """The client has all answers up to this one."""
        self._kept.acknowledge(number)

    def ask(self, asked: Ask) -> None:
        """Answer one question about the current window."""
        if len(self._asks) >= MAX_ASKS or self._outgoing is None or self._outgoing.is_full:
            refusal = too_much(f"{MAX_ASKS} of your questions to this camera are being answered")
            self._mention(refusal, asked.id)
            return
        task = asyncio.ensure_future(self._ask(asked, self._outgoing))
        self._asks.add(task)
        task.add_done_callback(self._asks.discard)

    def end(self) -> None:
        """No more pictures come: answer what is there, then end."""
        self._intake.end()

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
        live, intake = self._live.counts, self._intake
        frames = {str(placement): number for placement, number in live.frames.items()}
        for name, number in intake.placed.items():
            frames[str(name)] = frames.get(str(name), 0) + number
        windows = {
            "ended": live.windows,
            "asked": live.asked,
            "skipped": live.skipped,
            "dropped": live.dropped,
            "unread": live.unread,
            "lost": live.lost,
        }
        reasons = {str(why): number for why, number in intake.reasons.items()}
        self._measure(frames, windows)
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
        if self._outgoing is not None:
            self._outgoing.finish(self._end_code)

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
            self._tell_final({"type": "ended"}, self._end_code)
        except Exception as error:
            self._fail(self._refusal_of(error))
        finally:
            for task in tasks:
                task.cancel()

    def _refusal_of(self, error: Exception) -> RefusedError:
        """What the client is told of an error."""
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, HeadstartError):
            return bad_request(str(error))
        if isinstance(error, ValueError):  # of vLLM's processors, over placeholders in a text
            return bad_request(
                f"vLLM does not take the question: {' '.join(str(error).split())[:300]}"
            )
        self._on_failure(error)
        return _FAILED

    def _fail(self, refusal: RefusedError) -> None:
        self._live.close()
        self._tell_final(error_message(refusal, is_last=True), close_code(refusal))

    def _tell_final(self, message: Message, code: CloseCode) -> None:
        self._final = message, code
        if self._outgoing is not None:
            self._outgoing.tell(self.counts())
            self._outgoing.tell(message)
            self._outgoing.finish(code)

    async def _answer_all(self, standing: Standing) -> None:
        async for answer in standing:
            await self._kept.wait_for_room()
            self._charge(answer)
            message = self._kept.add(answer_message(answer))
            if self._outgoing is not None:
                self._outgoing.tell(message)

    async def _ask(self, asked: Ask, outgoing: Outgoing) -> None:
        try:
            with self._gate.entrance.admit(self.tenant):
                grammar = grammar_of(asked.json_schema, self._gate.limits)
                if grammar is not None:
                    await self._gate.decoder.check_grammar(self.tenant, grammar)
                async with asyncio.timeout(self._gate.limits.request_s):
                    answer = await self._live.ask_async(
                        asked.question, max_tokens=asked.max_tokens, schema=asked.json_schema
                    )
            self._charge(answer)
            outgoing.tell({**answer_message(answer), "id": asked.id})
        except TimeoutError:
            late = f"no answer within {self._gate.limits.request_s:.0f} s; ask again"
            self._mention(too_much(late), asked.id)
        except Exception as error:
            self._mention(self._refusal_of(error), asked.id)

    def _charge(self, answer: WindowAnswer) -> None:
        self._charge_tokens(answer.answer)
        metrics.count_live_answer(answer.answer, self.tenant)

    def _charge_tokens(self, said: Answer) -> None:
        """What was computed: frames that were computed before have been charged before."""
        computed = said.num_prompt_tokens - said.num_cached_tokens + len(said.token_ids)
        self._gate.entrance.quota.charge(self.tenant, computed)

    def _compared(self, message: Message, said: Answer) -> None:
        self._charge_tokens(said)
        if self._outgoing is not None:
            self._outgoing.mention(message)

    def _show(self, shown: Shown) -> None:
        number = 0 if self._standing is None else self._standing.counts.asked
        if self._outgoing is None or number == self._muted:
            return
        if self._outgoing.mention(words_message(shown, number)):
            metrics.PREVIEWS.inc()
        else:
            self._muted = number

    def _mention(self, refusal: RefusedError, id: str | None = None) -> None:
        if self._outgoing is not None:
            self._outgoing.mention(error_message(refusal, is_last=False, id=id))

    def _started(self, is_new: bool) -> Message:
        limits = self._gate.limits
        return {
            "type": "started",
            "token": self.token,
            "resumed": not is_new,
            "stream": self.stream,
            "num_frames": self._num_frames,
            "newest_us": self._intake.newest_us,
            "limits": {
                "max_message_bytes": limits.max_live_message_bytes,
                "max_frame_pixels": limits.max_frame_pixels,
                "frames_per_minute": limits.live_frames_per_minute,
                "max_unacknowledged": MAX_KEPT,
                "idle_s": limits.live_idle_s,
                "resume_s": limits.live_resume_s,
            },
        }

    def _measure(self, frames: dict[str, int], windows: dict[str, int]) -> None:
        """Add to the figures what has come since the last time."""
        metrics.count_since(metrics.LIVE_FRAMES, frames, self._measured_frames)
        metrics.count_since(metrics.LIVE_WINDOWS, windows, self._measured_windows)
        self._measured_frames, self._measured_windows = frames, windows


_FAILED = RefusedError(
    HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed, and its log has the cause; start again"
)


def close_code(refusal: RefusedError) -> CloseCode:
    """How a socket is closed over a refusal."""
    if refusal.retry_after_s is not None:
        return CloseCode.TRY_LATER
    return (
        CloseCode.FAILED
        if refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        else CloseCode.REFUSED
    )
