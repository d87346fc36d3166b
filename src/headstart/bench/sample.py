"""One measured answer, with everything a later reader may want to check."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Self

from headstart.drafting.timeline import Stage
from headstart.engine.answer import Answer


@dataclass(frozen=True, slots=True)
class Sample:
    """Wall times of one answer on one engine. All seconds, from asking on."""

    workload: str
    method: str
    beside: str
    """The method that this one was asked in turn with: its own, or for bare vLLM the other's."""
    round: int
    stream: int
    index: int
    """Of the answer on its stream."""
    settled: bool
    """Whether it counts: the first answers of a stream only warm up engine and memory."""
    end_to_end_s: float
    first_token_s: float
    num_tokens: int
    num_prompt_tokens: int
    num_cached_tokens: int
    accepted: tuple[int, ...]
    """For each pass, how many drafted tokens it accepted."""
    drafted: tuple[int, ...]
    """For each pass that was handed a draft, how long it was."""
    first_drafted: int
    """How long the draft was that was verified with the prompt."""
    spans: tuple[tuple[str, str, float, float], ...]
    """Who (target or drafter), stage, start, end."""
    words: str
    """A digest of the answer's tokens: equal where the words are."""

    @property
    def pair(self) -> tuple[int, int, int]:
        """The same for two samples that were asked the same thing in turn."""
        return self.round, self.stream, self.index

    @property
    def num_passes(self) -> int:
        """Of the target."""
        return max(1, len(self.accepted))

    @property
    def accepted_with_prompt(self) -> int:
        """Tokens of the draft that was verified with the prompt."""
        return self.accepted[0] if self.first_drafted and self.accepted else 0

    def stage_s(self, stage: Stage) -> float:
        """Time the target spent in a stage."""
        return sum(
            stop - start
            for who, name, start, stop in self.spans
            if (who, name) == ("target", stage)
        )

    @classmethod
    def of(cls, answer: Answer, asked_s: float, answered_s: float, **place: Any) -> Self:
        """From an answer, when it was asked for and given, and where it belongs."""
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
        opening = [len(fate.tokens) for fate in answer.fates if fate.start == 0]
        return cls(
            **place,
            end_to_end_s=round(answered_s - asked_s, 6),
            first_token_s=round(first_s, 6),
            num_tokens=len(answer.token_ids),
            num_prompt_tokens=answer.num_prompt_tokens,
            num_cached_tokens=answer.num_cached_tokens,
            accepted=answer.accepted_histogram,
            drafted=tuple(len(fate.tokens) for fate in answer.fates),
            first_drafted=opening[0] if opening else 0,
            spans=spans,
            words=sha256(repr(answer.token_ids).encode()).hexdigest()[:16],
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def parse(cls, given: dict[str, Any]) -> Self:
        """What `as_json` wrote."""
        spans = tuple((who, stage, start, stop) for who, stage, start, stop in given["spans"])
        lists = {"accepted": tuple(given["accepted"]), "drafted": tuple(given["drafted"])}
        return cls(**{**given, **lists, "spans": spans})
