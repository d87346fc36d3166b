"""One measured answer, as it is kept in a result."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Self

from headstart.answers.answer import Answer
from headstart.answers.timeline import Stage


@dataclass(frozen=True, slots=True)
class Sample:
    """The times of one answer of one engine, in seconds since the question, and its drafts."""

    workload: str
    method: str
    beside: str
    """The method of the trial: equal to ``method``, or the one that bare vLLM is compared with."""
    round: int
    stream: int
    index: int
    """The answer's place on its stream."""
    settled: bool
    """Whether it counts; False for a stream's warm-up."""
    end_to_end_s: float
    first_token_s: float
    num_tokens: int
    num_prompt_tokens: int
    num_cached_tokens: int
    accepted: tuple[int, ...]
    """For each pass, how many drafted tokens it accepted."""
    drafted: tuple[int, ...]
    """The length of each draft, in order."""
    first_drafted: int
    """The length of the draft that was verified with the prompt; 0 without one."""
    spans: tuple[tuple[str, str, float, float], ...]
    """The model (target or drafter), the stage, its start and its end."""
    words: str
    """A digest of the answer's tokens."""

    @property
    def pair(self) -> tuple[int, int, int]:
        """Equal for two samples of the same question."""
        return self.round, self.stream, self.index

    @property
    def num_passes(self) -> int:
        return max(1, len(self.accepted))

    @property
    def accepted_with_prompt(self) -> int:
        """Accepted tokens of the draft that was verified with the prompt."""
        return self.accepted[0] if self.first_drafted and self.accepted else 0

    def stage_s(self, stage: Stage) -> float:
        """The time the target spent in a stage."""
        return sum(
            stop - start
            for who, name, start, stop in self.spans
            if (who, name) == ("target", stage)
        )

    @classmethod
    def of(cls, answer: Answer, asked_s: float, answered_s: float, **place: Any) -> Self:
        """The sample of an answer; ``place`` are the fields that say what was asked."""
        timeline = answer.timeline
        decode = [span for span in timeline.spans if span.stage is Stage.DECODE]
        first_s = (decode[0].start_s if decode else answered_s) - asked_s
        sides = {"target": timeline, "drafter": answer.drafter_timeline}
        spans = tuple(
            (
                who,
                str(span.stage),
                round(span.start_s - asked_s, 6),
                round(span.end_s - asked_s, 6),
            )
            for who, side in sides.items()
            if side is not None
            for span in side.spans
        )
        opening = [
            len(verdict.draft.tokens) for verdict in answer.verdicts if verdict.draft.start == 0
        ]
        return cls(
            **place,
            end_to_end_s=round(answered_s - asked_s, 6),
            first_token_s=round(first_s, 6),
            num_tokens=len(answer.token_ids),
            num_prompt_tokens=answer.num_prompt_tokens,
            num_cached_tokens=answer.num_cached_tokens,
            accepted=answer.accepted_histogram,
            drafted=tuple(len(verdict.draft.tokens) for verdict in answer.verdicts),
            first_drafted=opening[0] if opening else 0,
            spans=spans,
            words=sha256(repr(answer.token_ids).encode()).hexdigest()[:16],
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def parse(cls, given: dict[str, Any]) -> Self:
        spans = tuple((who, stage, start, stop) for who, stage, start, stop in given["spans"])
        lists = {"accepted": tuple(given["accepted"]), "drafted": tuple(given["drafted"])}
        return cls(**{**given, **lists, "spans": spans})
