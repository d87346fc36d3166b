"""What one request's answer took and where it came from, as the engine tells it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from headstart.answers.timeline import Span, Stage, Timeline
from headstart.speculation.draft import Draft, Verdict, by_source, is_fused
from headstart.speculation.drafter import StreamKey

FIELD = "headstart"
MAX_VERDICTS = 512  # of one answer, the first ones


class Ending(StrEnum):
    """How a rehearsal ended."""

    WHOLE = "whole"
    """It said all that it had to say."""
    CUT_OFF = "cut_off"
    """Its question was asked, or its next frame was due. What it had said is used."""
    NO_ROOM = "no_room"
    """Others needed the blocks, or the engine samples where it could not verify its words."""
    NO_TIME = "no_time"
    """Rehearsals had taken their share of the engine's time."""


@dataclass
class RehearsalCounts:
    """What became of an engine's rehearsals in some time."""

    endings: Counter[Ending] = field(default_factory=Counter)
    tokens: int = 0
    """That they have said."""
    seconds: float = 0.0
    """Of the engine."""
    other_seconds: float = 0.0
    """Of the engine, for all else."""

    def as_json(self) -> list[Any]:
        """The form `parse` reads."""
        return [dict(self.endings), self.tokens, self.seconds, self.other_seconds]

    @classmethod
    def parse(cls, given: Sequence[Any]) -> Self:
        endings, tokens, seconds, other_seconds = given
        known = {Ending(name): number for name, number in endings.items()}
        return cls(Counter(known), tokens, seconds, other_seconds)

    def add(self, more: "RehearsalCounts") -> None:
        """Count also what became of others."""
        self.endings = self.endings + more.endings
        self.tokens += more.tokens
        self.seconds += more.seconds
        self.other_seconds += more.other_seconds


@dataclass(frozen=True)
class Report:
    """The passes of the target over one answer."""

    accepted: tuple[int, ...]
    """How many drafted tokens each pass accepted."""
    verdicts: tuple[Verdict, ...]
    num_remembered: int = 0
    """Answers in the engine's memory, of all streams, when this one was complete."""
    rehearsals: RehearsalCounts = field(default_factory=RehearsalCounts)
    """Of the engine, since the last answer that reported them."""

    def params(self) -> dict[str, Any]:
        """The form `parse` reads: plain values only."""
        verdicts = [
            [
                verdict.draft.source,
                verdict.draft.start,
                list(verdict.draft.tokens),
                verdict.draft.made_at_s,
                verdict.num_accepted,
            ]
            for verdict in self.verdicts
        ]
        return {
            FIELD: {
                "accepted": list(self.accepted),
                "verdicts": verdicts,
                "remembered": self.num_remembered,
                "rehearsals": self.rehearsals.as_json(),
            }
        }

    @classmethod
    def parse(cls, params: Mapping[str, Any] | None) -> Self | None:
        """What an answer brought back, if it brought anything of ours."""
        given = (params or {}).get(FIELD)
        if given is None:
            return None
        verdicts = tuple(
            Verdict(Draft(tuple(tokens), source, made_at_s, start), num_accepted)
            for source, start, tokens, made_at_s, num_accepted in given["verdicts"]
        )
        rehearsals = RehearsalCounts.parse(given["rehearsals"])
        return cls(tuple(given["accepted"]), verdicts, given["remembered"], rehearsals)


class PassRecord:
    """The passes of one request, as they happen."""

    def __init__(self) -> None:
        self._handed: Draft | None = None
        self._passes: list[tuple[int, int, int]] = []
        """With a draft: after how many tokens, how many were accepted, and where it ended."""
        self._verdicts: list[Verdict] = []

    def hand(self, draft: Draft) -> None:
        self._handed = draft

    def passed(self, start: int, num_scheduled: int, num_said: int) -> None:
        """A pass after ``start`` tokens said ``num_said``, and verified ``num_scheduled``.

        vLLM may have taken only the beginning of what it was handed. Passes that verify nothing
        need not be told of: each of them says one token.
        """
        handed, self._handed = self._handed, None
        if handed is None or not num_scheduled:
            return
        tokens = handed.tokens[:num_scheduled]
        num_accepted = min(max(0, num_said - 1), len(tokens))
        self._passes.append((start, num_accepted, start + num_said))
        if tokens and len(self._verdicts) < MAX_VERDICTS:
            if (len(tokens), start) != (len(handed.tokens), handed.start):
                handed = replace(handed, tokens=tokens, start=start)
            self._verdicts.append(Verdict(handed, num_accepted))

    def report(
        self,
        answer: Sequence[int],
        num_said: int,
        num_remembered: int = 0,
        rehearsals: RehearsalCounts | None = None,
    ) -> Report:
        """Of the whole answer. Tokens accepted beyond its end were not the answer's.

        ``num_said`` counts those beyond, too: with stop strings, or if it was aborted.
        """

        def within(start: int, count: int) -> int:
            return min(count, max(0, len(answer) - start))

        verdicts = tuple(
            replace(verdict, num_accepted=within(verdict.draft.start, verdict.num_accepted))
            for verdict in self._verdicts
        )
        accepted, place = list[int](), 0
        for start, count, end in self._passes:
            accepted += [0] * (start - place)
            accepted.append(within(start, count))
            place = end
        accepted += [0] * (num_said - place)
        rehearsals = rehearsals or RehearsalCounts()
        return Report(tuple(accepted), verdicts, num_remembered, rehearsals)


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
