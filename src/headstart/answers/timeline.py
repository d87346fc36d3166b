"""Where the time of one answer went: five stages, as spans on one clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """What an answer waits for, in order."""

    LOAD = "load"
    PREPROCESS = "preprocess"
    VISION = "vision"
    PREFILL = "prefill"
    DECODE = "decode"


STAGE_COLOURS = {
    Stage.LOAD: "#8a8f98",
    Stage.PREPROCESS: "#6fa3a8",
    Stage.VISION: "#8d6fb0",
    Stage.PREFILL: "#5b84b1",
    Stage.DECODE: "#d98e2b",
}
"""One on every page and picture, and in the terminal; seen on white and on black.

No curve of a chart has one of them, and the first few curves have none that is like them.
"""


@dataclass(frozen=True)
class Span:
    """One stretch of a stage, in seconds of a monotonic clock shared by all processes."""

    stage: Stage
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if self.end_s < self.start_s:
            raise ValueError(
                f"{self.stage} ends {self.start_s - self.end_s:.6f} s before it starts"
            )

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Timeline:
    """All spans of one answer, from asking to the last token."""

    start_s: float
    end_s: float
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, start_s: float, end_s: float, spans: Iterable[Span]) -> "Timeline":
        return cls(start_s, end_s, tuple(sorted(spans, key=lambda span: span.start_s)))

    @property
    def total_s(self) -> float:
        return self.end_s - self.start_s

    def duration_s(self, stage: Stage) -> float:
        return sum(span.duration_s for span in self.spans if span.stage is stage)

    @property
    def between_stages_s(self) -> float:
        """Wall time no stage accounts for: queueing, and handing over between processes."""
        return self.total_s - sum(span.duration_s for span in self.spans)
