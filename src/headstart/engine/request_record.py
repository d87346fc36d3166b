"""What one request's answer took and where it came from, as the engine tells it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headstart.answers.timeline import Span, Stage, Timeline
from headstart.engine.report import Report
from headstart.speculation.drafter import StreamKey
from headstart.speculation.verdict import Verdict, by_source, is_fused


@dataclass
class RequestRecord:
    """One request, from its arrival on; `EngineClient` fills it in. All times are monotonic."""

    request_id: str
    received_s: float
    loaded_s: float
    """When its clip was read; when it was received, if there was nothing to read."""
    stream: StreamKey | None = None
    generate_s: float = 0.0
    end_s: float = 0.0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_tokens: int = 0
    """Of the prompt and of all answers: what the request cost."""
    token_ids: list[int] = field(default_factory=list)
    """Of the first answer, where several are asked for."""
    finish_reason: str | None = None
    """How the first answer ended, in vLLM's words; none while it has not."""
    vision_s: float = 0.0
    """Time in the vision tower; set by `EngineClient.time_vision`."""
    stats: Any = None
    report: Report | None = None
    on_word: Callable[[], None] = lambda: None
    """Called with each output that holds tokens."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What became of its drafts."""
        return self.report.verdicts if self.report else ()

    @property
    def num_accepted(self) -> int:
        """Tokens of the answer that were drafted before the target said them."""
        return sum(self.report.accepted) if self.report else 0

    def by_source(self) -> dict[str, tuple[int, int]]:
        """For each source, how many tokens it drafted and how many of them were accepted."""
        return by_source(self.verdicts)

    @property
    def fused(self) -> bool:
        """Whether the pass that ended the prompt verified a draft too."""
        return is_fused(self.verdicts)

    @property
    def loading(self) -> Span | None:
        """Reading the clip; none if there was nothing to read."""
        if self.loaded_s <= self.received_s:
            return None
        return Span(Stage.LOAD, self.received_s, self.loaded_s)

    def timeline(self) -> Timeline | None:
        """Where the time went; none if the engine did not finish the answer.

        vLLM stamps with the same monotonic clock. The tower runs inside the prefill, a chunk at a
        time; it is drawn before it.
        """
        stats = self.stats
        if stats is None or not stats.first_token_ts:
            return None
        vision_end_s = min(stats.scheduled_ts + self.vision_s, stats.first_token_ts)
        edges = (
            (Stage.PREPROCESS, self.loaded_s, self.generate_s),
            (Stage.VISION, stats.scheduled_ts, vision_end_s),
            (Stage.PREFILL, vision_end_s, stats.first_token_ts),
            (Stage.DECODE, stats.first_token_ts, stats.last_token_ts),
        )
        # Measured in two processes: an end may seem to come before its start.
        spans = [Span(stage, start_s, max(start_s, end_s)) for stage, start_s, end_s in edges]
        if self.loading is not None:
            spans.append(self.loading)
        return Timeline.of(self.received_s, self.end_s, spans)
