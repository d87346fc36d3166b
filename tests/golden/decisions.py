"""What is drafted in 20 random schedules: in every pass, from which source, which tokens.

    python -m tests.golden.decisions

writes `kept/decisions.txt` anew. Equal answers do not show that drafting has become worse; equal
decisions do. A line is a pass of a request: the step, the request's number, the source, the draft
in the letters of the target's words. Time is played: a pass takes as long as its size says, and one
of the sources takes time too.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import ModelRunnerOutput

from headstart.engine.options import Sources
from headstart.speculation.drafter import DraftRequest
from rig.schedule_harness import Player
from rig.schedule_target import LETTERS, likely_answer
from tests.golden.clock import CLOCK, turned
from tests.schedule_fuzz import play
from tests.schedule_plans import plan_of

KEPT = Path(__file__).with_name("kept") / "decisions.txt"
SEEDS = (0, *range(2, 21))  # 1 asks for two passes in flight, which is refused
PASS_S, TOKEN_S = 0.020, 0.0005
"""Of a pass, and more for each of its tokens."""
GUESS_S = 0.003
LETTER_OF = dict(enumerate("?^$" + LETTERS)) | {-1: "-"}
"""Of every token that may be drafted, and of one that a grammar has refused."""


class Guesser:
    """A `Drafter` from outside that takes time: the answer goes on as the last words mostly do."""

    name = "guesser"

    def begin(self, request: DraftRequest) -> None:
        pass

    def prepare(self, request_id: str) -> None:
        pass

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> list[int]:
        CLOCK.now_s += GUESS_S
        return likely_answer(confirmed[-3:], min(max_tokens, 12)) if len(confirmed) > 2 else []

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        pass


USUAL, FURTHER = Sources(), Sources(("memory", "ngram", f"{__name__}:Guesser"))
EAGER = Sources(abstain=False)
SOURCES = (USUAL, EAGER, USUAL, FURTHER)


class NotingPlayer(Player):
    """Notes every draft as its pass is computed, and turns the clock by what the pass takes."""

    def __init__(self, lines: list[str], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lines = lines

    def _execute(self, step: SchedulerOutput) -> ModelRunnerOutput:
        for name, draft in step.scheduled_spec_decode_tokens.items():
            # The one place here that knows where the scheduler keeps what it has handed out.
            source = self.scheduler._states[name].record._handed.source
            letters = "".join(LETTER_OF[token] for token in draft)
            number = name.removeprefix("request-")
            self._lines.append(f"{self.counts.steps} {number} {source} {letters}")
        CLOCK.now_s += PASS_S + TOKEN_S * step.total_num_scheduled_tokens
        return super()._execute(step)


def decisions(seed: int) -> list[str]:
    """The lines of a seed."""
    sources = SOURCES[seed % len(SOURCES)]
    plan = replace(plan_of(seed, rehearses=False), sources=sources)
    lines = [f"seed {seed}"]
    with turned():
        play(plan, plan.max_draft_tokens, player=partial(NotingPlayer, lines))
    return lines


def first_difference(kept: Sequence[str], made: Sequence[str]) -> str:
    """Where lines begin to differ, with what comes before; empty if they do not."""
    seed = ""
    for place, (old, new) in enumerate(zip_longest(kept, made)):
        if old != new:
            before = "".join(f"\n       {line}" for line in kept[max(0, place - 3) : place])
            return f"{seed}, step request source draft:{before}\n  kept {old}\n  now  {new}"
        seed = old if old.startswith("seed") else seed
    return ""


def main() -> None:
    lines = [line for seed in SEEDS for line in decisions(seed)]
    KEPT.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
