"""A camera whose pictures a client sends over a socket, where it may ask other questions too.

It outlives a broken connection for a while. Answers are kept until the client says that it has
them, so that none is lost and none comes twice.
"""

import asyncio
import secrets
import time

from headstart_client.wire import Media
from headstart_server.live.camera import Camera
from headstart_server.live.failures import OnFailure, refusal_of
from headstart_server.live.kept_answers import MAX_KEPT, UnacknowledgedAnswers
from headstart_server.live.messages import Ask, Message, Start, answer_message, grammar_of
from headstart_server.live.outgoing import Outgoing
from headstart_server.live.places import Place
from headstart_server.live.socket_intake import SocketIntake
from headstart_server.refusal import too_much

MAX_ASKS = 4
"""Questions of one client that are answered at the same time."""
PAUSE_S = 2.0
"""After a question too many, all are refused until so long none came. Or else a client that asks
without end would have as many answered as there is room for, all the time."""


class SocketCamera(Camera):
    """Used from one event loop only."""

    def __init__(self, place: Place, start: Start, on_failure: OnFailure) -> None:
        self._unacknowledged = UnacknowledgedAnswers()
        super().__init__(place, start, self._unacknowledged, on_failure)
        self.token = secrets.token_urlsafe(32)
        self._pause_until_s = 0.0
        self._pictures = SocketIntake(
            place.gate,
            self._live,
            self._mention,
            simulate=start.simulate_events,
            sensor=start.sensor_size,
            codec=start.codec,
        )
        self._begin(self._pictures)

    def begin(self, outgoing: Outgoing) -> None:
        """Send to the client that started it."""
        outgoing.tell(self._started(is_new=True))
        self.attach(outgoing, 0)

    def resume(self, outgoing: Outgoing, number: int) -> None:
        """Send to a client that has all answers up to ``number``."""
        self._unacknowledged.acknowledge(number)
        self._pictures.cut()  # the client may have sent what never came
        outgoing.tell(self._started(is_new=False))
        self.attach(outgoing, number)

    def put(self, media: Media) -> None:
        """Take a picture or events."""
        if not self.is_over:
            self._pictures.put(media)

    def acknowledge(self, number: int) -> None:
        """The client has all answers up to this one."""
        self._unacknowledged.acknowledge(number)

    def end(self) -> None:
        """No more pictures come: answer what is there, then end."""
        self._pictures.end()

    def ask(self, asked: Ask) -> None:
        """Answer one question about the current window."""
        now_s = time.monotonic()
        outgoing, is_full = self._outgoing, len(self._asks) >= MAX_ASKS
        if outgoing is None or outgoing.is_full or is_full or now_s < self._pause_until_s:
            self._pause_until_s = now_s + PAUSE_S
            self._mention(
                too_much(
                    f"more than {MAX_ASKS} questions to this camera at a time: ask none for"
                    f" {PAUSE_S:g} s"
                ),
                asked.id,
            )
            return
        task = asyncio.ensure_future(self._ask(asked, outgoing))
        self._asks.add(task)
        task.add_done_callback(self._asks.discard)

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
            self._mention(refusal_of(error, self._on_failure), asked.id)

    def _started(self, *, is_new: bool) -> Message:
        limits = self._gate.limits
        return {
            "type": "started",
            "token": self.token,
            "resumed": not is_new,
            "stream": self.stream,
            "num_frames": self.num_frames,
            "newest_us": self._pictures.newest_us,
            "limits": {
                "max_message_bytes": limits.max_live_message_bytes,
                "max_frame_pixels": limits.max_frame_pixels,
                "frames_per_minute": limits.live_frames_per_minute,
                "max_unacknowledged": MAX_KEPT,
                "idle_s": limits.live_idle_s,
                "resume_s": limits.live_resume_s,
            },
        }
