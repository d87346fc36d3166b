"""A camera whose pictures a client sends over a socket, where it may ask other questions too.

It outlives a broken connection for a while. Answers are kept until the client says that it has
them, so that none is lost and none comes twice.
"""

import asyncio
import secrets
import time

from headstart_client.wire import Media
from headstart_server.live.answer_buffer import MAX_KEPT, UnacknowledgedAnswers
from headstart_server.live.camera import Camera, OnFailure
from headstart_server.live.camera_resources import CameraResources
from headstart_server.live.messages import Ask, Start, answer_message, grammar_of
from headstart_server.live.send_queue import SendQueue
from headstart_server.live.socket_intake import SocketIntake
from headstart_server.refusal import too_much

MAX_ASKS = 4
"""Questions of one client that are answered at the same time."""
PAUSE_S = 2.0
"""After a question too many, all are refused until so long none came. Or else a client that asks
without end would have as many answered as there is room for, all the time."""


class SocketCamera(Camera):
    """Used from one event loop only."""

    def __init__(self, resources: CameraResources, start: Start, on_failure: OnFailure) -> None:
        self._unacknowledged = UnacknowledgedAnswers()
        super().__init__(resources, start, self._unacknowledged, on_failure)
        self.token = secrets.token_urlsafe(32)
        self._pause_until_s = 0.0
        self._pictures = SocketIntake(
            resources.context,
            self._live,
            self._warn,
            simulate=start.simulate_events,
            sensor=start.sensor_size,
            codec=start.codec,
        )
        self._begin(self._pictures)

    def begin(self, queue: SendQueue) -> None:
        self._welcome(queue, 0, is_new=True)

    def resume(self, queue: SendQueue, number: int) -> None:
        """Send to a client that has all answers up to ``number``."""
        self._unacknowledged.acknowledge(number)
        self._pictures.cut()  # the client may have sent what never came
        self._welcome(queue, number, is_new=False)

    def put(self, media: Media) -> None:
        if not self.is_over:
            self._pictures.put(media)

    def acknowledge(self, number: int) -> None:
        """The client has all answers up to this one."""
        self._unacknowledged.acknowledge(number)

    def end(self) -> None:
        """No more pictures come: answer what is there, then end."""
        self._pictures.end()

    def ask(self, asked: Ask) -> None:
        now_s = time.monotonic()
        queue, is_full = self._queue, len(self._asks) >= MAX_ASKS
        if queue is None or queue.is_full or is_full or now_s < self._pause_until_s:
            self._pause_until_s = now_s + PAUSE_S
            many = f"more than {MAX_ASKS} questions to this camera at a time: ask none for"
            self._warn(too_much(f"{many} {PAUSE_S:g} s"), asked.id)
            return
        task = asyncio.ensure_future(self._ask(asked, queue))
        self._asks.add(task)
        task.add_done_callback(self._asks.discard)

    async def _ask(self, asked: Ask, queue: SendQueue) -> None:
        limits = self._context.limits
        try:
            with self._context.admission.admit(self.tenant):
                grammar = grammar_of(asked.json_schema, limits)
                if grammar is not None:
                    await self._context.decoder.check_grammar(self.tenant, grammar)
                async with asyncio.timeout(limits.request_s):
                    answer = await self._live.ask_async(
                        asked.question, max_tokens=asked.max_tokens, schema=asked.json_schema
                    )
            self._charge(answer)
            queue.send({**answer_message(answer), "id": asked.id})
        except TimeoutError:
            late = f"no answer within {limits.request_s:.0f} s; ask again"
            self._warn(too_much(late), asked.id)
        except Exception as error:
            self._warn(self._refusal_of(error), asked.id)

    def _welcome(self, queue: SendQueue, number: int, *, is_new: bool) -> None:
        limits = self._context.limits
        queue.send(
            {
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
        )
        self.attach(queue, number)
