"""The answer about one window of a live camera."""

from dataclasses import dataclass

from headstart.answers.answer import Answer
from headstart.answers.timeline import Stage


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
        """The target's words."""
        return self.answer.text

    @property
    def first_token_s(self) -> float:
        """From the last frame to the first token."""
        spans = self.answer.timeline.spans
        first_s = next(span.end_s for span in spans if span.stage is Stage.PREFILL)
        return first_s - self.landed_s

    @property
    def wait_s(self) -> float:
        """From the last frame to the last word."""
        return self.answer.timeline.end_s - self.landed_s
