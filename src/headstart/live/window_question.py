"""A question about windows of a live camera, and what the target says of each."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.answers.timeline import Stage
from headstart.engine.question import Question
from headstart.engine.session import Session
from headstart.live.windows import Window
from headstart.media.clip import Clip


@dataclass(frozen=True)
class WindowAnswer:
    """What the target said about a window, and how long after its last frame."""

    stream: str
    question: str
    start_us: int
    """The window's, on the camera's clock."""
    stop_us: int
    num_frames: int
    landed_s: float
    """When the window's last frame landed, on the monotonic clock."""
    asked_s: float
    """When the question was sent to the target; later where another answer was under way."""
    answer: Answer

    @property
    def text(self) -> str:
        return self.answer.text

    @property
    def first_token_s(self) -> float:
        spans = self.answer.timeline.spans
        first_s = next(span.end_s for span in spans if span.stage is Stage.PREFILL)
        return first_s - self.landed_s

    @property
    def wait_s(self) -> float:
        return self.answer.timeline.end_s - self.landed_s


@dataclass(frozen=True)
class WindowQuestion:
    """What is asked, about any window."""

    words: str
    max_tokens: int = 256
    schema: Mapping[str, Any] | None = None
    on_shown: Callable[[Shown], None] | None = None
    on_answer: Callable[[Window, Answer], None] | None = None
    mark: str = field(default_factory=lambda: uuid4().hex[:12])
    """Its own: another session on the same camera has windows of the same numbers."""

    async def answer(self, session: Session, window: Window) -> WindowAnswer:
        """Ask the target about a window, in the engine's event loop."""
        asked_s = time.monotonic()
        if window.events:
            # Joining events takes too long for the loop.
            question = await asyncio.to_thread(self.about, session, window)
        else:
            question = self.about(session, window)
        answer = await session.target.ask(question, self.on_shown)
        if self.on_answer is not None:
            self.on_answer(window, answer)
        return WindowAnswer(
            stream="" if session.key is None else session.key.stream,
            question=self.words,
            start_us=window.start_us,
            stop_us=window.stop_us,
            num_frames=len(window.frames),
            landed_s=window.landed_s,
            asked_s=asked_s,
            answer=answer,
        )

    def about(self, session: Session, window: Window) -> Question:
        """What is asked about a window, or about as much of it as has landed."""
        clip = Clip(window.video(), window.all_events())
        question = session.question(clip, self.words, self.max_tokens, self.schema)
        name = f"{self.mark} {window.number}"
        return replace(question, previews=self.on_shown is not None, window=name)
