"""One live camera of a tenant: its windows, its answers, and the client that listens to them.

Where its pictures come from, and for how long its answers are kept, is left to `SocketCamera` and
`SourceCamera`.
"""

import asyncio

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.live.session import LiveSession
from headstart.live.standing import StandingQuestion
from headstart.live.when import WhenChanged
from headstart.live.window_question import WindowAnswer, WindowQuestion
from headstart_client.wire import CloseCode
from headstart_server import metrics
from headstart_server.live.comparison import Comparison
from headstart_server.live.failures import OnFailure, close_code, refusal_of
from headstart_server.live.kept_answers import AnswerStore
from headstart_server.live.messages import (
    Message,
    Watched,
    answer_message,
    error_message,
    words_message,
)
from headstart_server.live.outgoing import Outgoing
from headstart_server.live.places import Place
from headstart_server.live.window_intake import WindowIntake
from headstart_server.refusal import RefusedError, bad_request


class Camera:
    """Used from one event loop only. `close` gives everything back."""

    def __init__(
        self, place: Place, wanted: Watched, kept: AnswerStore, on_failure: OnFailure
    ) -> None:
        """Where the client wants to compare, vLLM alone is asked too."""
        self.tenant, self.stream = place.gate.tenant, wanted.stream
        self.num_frames = place.session.target.view.num_frames
        self._gate, self._on_failure = place.gate, on_failure
        when = WhenChanged(floor_s=wanted.at_least_s) if wanted.when == "changed" else None
        self._live = LiveSession(place.session, wanted.windows, when=when)
        self._standing: StandingQuestion | None = None
        self._comparison: Comparison | None = None
        if wanted.question is not None:
            if wanted.compare and place.bare is not None:
                asked = WindowQuestion(wanted.question, wanted.max_tokens, wanted.json_schema)
                self._comparison = Comparison(place.bare, asked, self._compared)
            self._standing = self._live.standing(
                wanted.question,
                max_tokens=wanted.max_tokens,
                schema=wanted.json_schema,
                on_shown=self._show if wanted.previews else None,
                on_answer=None if self._comparison is None else self._comparison.offer,
            )
        self._kept = kept
        self._muted = 0
        """The answer whose words are left out, since some were missed."""
        self._asks: set[asyncio.Task[None]] = set()
        """Other questions under way, which end before the camera does."""
        self._outgoing: Outgoing | None = None
        self._final: tuple[Message, CloseCode] | None = None
        self._measured_frames: dict[str, int] = {}
        self._measured_windows: dict[str, int] = {}
        self._end_code = CloseCode.ENDED

    def _begin(self, intake: WindowIntake) -> None:
        """Take pictures in, and answer, from now on."""
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

    def attach(self, outgoing: Outgoing, number: int) -> None:
        """Send to this client from now on, beginning with the answers after ``number``."""
        if self._outgoing is not None:
            taken = "this camera is listened to over another connection, which has it now"
            self._outgoing.tell(error_message(bad_request(taken), is_last=True))
            self._outgoing.finish(CloseCode.REFUSED)
        self._outgoing = outgoing
        self._muted = 0 if self._standing is None else self._standing.counts.asked
        for message in self._kept.after(number):
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
            self._fail(refusal_of(error, self._on_failure))
        finally:
            for task in tasks:
                task.cancel()

    def _fail(self, refusal: RefusedError) -> None:
        self._live.close()
        self._tell_final(error_message(refusal, is_last=True), close_code(refusal))

    def _tell_final(self, message: Message, code: CloseCode) -> None:
        self._final = message, code
        if self._outgoing is not None:
            self._outgoing.tell(self.counts())
            self._outgoing.tell(message)
            self._outgoing.finish(code)

    async def _answer_all(self, standing: StandingQuestion) -> None:
        async for answer in standing:
            await self._kept.wait_for_room()
            self._charge(answer)
            message = self._kept.add(answer_message(answer))
            self._given(answer, self._kept.number)
            if self._outgoing is not None:
                self._outgoing.tell(message)

    def _given(self, answer: WindowAnswer, number: int) -> None:
        """An answer to the standing question has been given."""

    def _charge(self, answer: WindowAnswer) -> None:
        self._charge_tokens(answer.answer)
        metrics.count_live_answer(answer, self.tenant)

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

    def _measure(self, frames: dict[str, int], windows: dict[str, int]) -> None:
        """Add to the figures what has come since the last time."""
        metrics.count_since(metrics.LIVE_FRAMES, frames, self._measured_frames)
        metrics.count_since(metrics.LIVE_WINDOWS, windows, self._measured_windows)
        self._measured_frames, self._measured_windows = frames, windows
