"""vLLM alone, asked about the same windows, so that a person can see what the head start is worth.

It is another engine, with vLLM's own scheduler, and is given each window as a whole. It is asked
when the other engine has answered, so that the two questions do not share the processor. Its times
count from its question, as if that had come with the last frame.
"""

import asyncio
from collections.abc import Callable

from headstart.answers.answer import Answer
from headstart.answers.timeline import Stage
from headstart.engine.session import Session
from headstart.live.window_question import WindowQuestion
from headstart.live.windows import Window
from headstart_server.live.messages import Message


class Comparison:
    """Used from one event loop only. One window is asked about at a time; the newest is next."""

    def __init__(
        self, bare: Session, question: WindowQuestion, tell: Callable[[Message, Answer], None]
    ) -> None:
        """``tell`` gets what is sent to the client, and the answer of vLLM alone."""
        self._bare, self._question, self._tell = bare, question, tell
        self._number = 0
        self._next: tuple[int, Window, Answer] | None = None
        self._asking: asyncio.Task[None] | None = None

    def offer(self, window: Window, ours: Answer) -> None:
        """The next window is answered."""
        self._number += 1
        self._next = self._number, window, ours
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)

    def close(self) -> None:
        self._next = None
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self) -> None:
        while self._next is not None:
            (number, window, ours), self._next = self._next, None
            asking = self._question.answer(self._bare, window)
            found = await asyncio.wrap_future(self._bare.loop.submit(asking))
            spans = found.answer.timeline.spans
            first_s = next(span.end_s for span in spans if span.stage is Stage.PREFILL)
            message: Message = {
                "type": "compared",
                "number": number,
                "first_token_s": round(first_s - found.asked_s, 4),
                "wait_s": round(found.answer.timeline.end_s - found.asked_s, 4),
                "num_passes": found.answer.num_passes,
                "is_same": found.answer.token_ids == ours.token_ids,
            }
            self._tell(message, found.answer)

    def _asked(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # the camera goes on without it
