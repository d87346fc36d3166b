"""What a run of `live_promise` counts, and what would make it worthless."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headstart import Answer
from headstart.live.session import LiveSession
from headstart.live.windows import Windows
from headstart_events.beside.worth import SOURCE as EVENTGPT
from headstart_lab.workloads import REPORT

SHAPES = {"tumbling": Windows(1.0), "stepping": Windows(2.0, every=1.0)}
STEADY_WINDOWS = Windows(4.0, every=2.0)
"""Two are fed at a time, four frames a second in all: what one slow core computes in time."""
KINDS: dict[str, dict[str, Any]] = {
    "prose": {"max_tokens": 32, "schema": None},
    "json": {"max_tokens": 48, "schema": REPORT},
}


@dataclass
class Cell:
    """One kind of windows, answers and drafts, and what came of it."""

    drafter: str
    shape: str
    kind: str
    windows: int = 0
    equal: int = 0
    unsettled: int = 0
    """Of these, bare vLLM said other words among other questions than alone."""
    frames_fed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    drafted: int = 0
    drafted_by_eventgpt: int = 0
    accepted: int = 0
    kills: int = 0
    lies: int = 0
    placements: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    dropped: int = 0
    """Windows that were not asked about, since a newer one ended before their turn."""

    @property
    def name(self) -> str:
        """What it is."""
        return f"{self.drafter}, {self.shape}, {self.kind}"

    @property
    def asked(self) -> dict[str, Any]:
        """How its questions are asked."""
        return KINDS[self.kind]

    @property
    def is_undrafted(self) -> bool:
        """Whether no source has anything to say: the drafter is not asked where a grammar binds."""
        return self.drafter == "alone" and self.asked["schema"] is not None

    def note(self, answer: Answer) -> None:
        """Count an answer."""
        self.windows += 1
        self.prompt_tokens += answer.num_prompt_tokens
        self.cached_tokens += answer.num_cached_tokens
        self.drafted += answer.num_drafted_tokens
        self.accepted += answer.num_accepted_tokens
        drafts = [verdict.draft for verdict in answer.verdicts]
        self.drafted_by_eventgpt += sum(len(d.tokens) for d in drafts if d.source == EVENTGPT)

    def end(self, live: LiveSession, num_fed: int) -> None:
        """Count what became of the frames, and close the session."""
        counts = live.counts
        live.close()
        self.frames_fed = num_fed
        self.missing, self.dropped = counts.missing, counts.dropped
        self.placements = {each.value: number for each, number in sorted(counts.frames.items())}

    def faults(self) -> Iterator[str]:
        """What is wrong, or shows nothing."""
        if self.equal < self.windows:
            yield f"{self.windows - self.equal} of {self.windows} windows differ from bare vLLM"
        if not self.windows or not self.frames_fed or not self.cached_tokens:
            yield "nothing was fed"
        if not self.drafted and not self.is_undrafted:
            yield "nothing was drafted"

    def __str__(self) -> str:
        cached = self.cached_tokens / max(1, self.prompt_tokens)
        placed = ", ".join(f"{number} {name}" for name, number in self.placements.items())
        return (
            f"{self.name}: {self.equal} of {self.windows} equal, {cached:.0%} of prompts cached,"
            f" {self.drafted} drafted, {self.accepted} accepted; {placed}, {self.missing} missing"
        )


def faults(cells: Sequence[Cell]) -> Iterator[str]:
    """Of all cells: words that differ, and cells or drafters that show nothing."""
    for cell in cells:
        yield from (f"{cell.name}: {fault}" for fault in cell.faults())

    def total(drafter: str, name: str) -> int | None:
        counted = [getattr(cell, name) for cell in cells if cell.drafter == drafter]
        return sum(counted) if counted else None

    if total("alone", "drafted_by_eventgpt") == 0:
        yield "alone: nothing of the drafter's was verified"
    if total("killed", "kills") == 0:
        yield "killed: the drafter was never killed"
    if total("lying", "drafted_by_eventgpt") == 0:
        yield "lying: no lie of the channel's was verified"


@dataclass
class Steady:
    """What a steady camera's questions computed after the last frame, in tokens."""

    computed: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """Of the prompt."""
    worth: int = 0
    """One step's, of the shortest question."""

    def note(self, answer: Answer, num_frames: int, num_step_frames: int, per_frame: int) -> None:
        """Count an answer."""
        computed = answer.num_prompt_tokens - answer.num_cached_tokens
        question = answer.num_prompt_tokens - num_frames * per_frame
        self.computed.append(computed)
        self.shares.append(computed / answer.num_prompt_tokens)
        self.worth = num_step_frames * per_frame + question

    def faults(self) -> Iterator[str]:
        """What was to be shown and is not so."""
        above = sum(each > self.worth for each in self.computed)
        if above:
            yield f"{above} steady questions computed more than {self.worth} tokens, a step's worth"

    def figures(self) -> dict[str, Any]:
        """As they are kept."""
        return {
            "questions": len(self.computed),
            "computed_tokens_p50": float(np.median(self.computed)),
            "computed_tokens_max": max(self.computed),
            "share_p50": round(float(np.median(self.shares)), 3),
            "share_max": round(max(self.shares), 3),
            "step_worth_tokens": self.worth,
            "computed_tokens": self.computed,
        }
