"""Random schedules through our scheduler, each answer compared with vLLM's own scheduler.

    python -m tests.schedule_fuzz --drafted 10000000 --seed 1

Chunk sizes, budgets, aborts, preemption, prefix hits of every length, priorities, the longest
context, growing prompts, ways to stop; drafts right, wrong, hostile and late. The last line is
JSON. `tests/schedule_harness.py` plays them.
"""

import argparse
import json
import logging
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.measurement import Measurement

from headstart.engine.options import MAX_VERIFIED_TOKENS, Sources
from headstart.errors import DraftingError
from tests.schedule_harness import (
    AnyPace,
    Asked,
    Counts,
    Player,
    Said,
    Turn,
    scheduler,
)
from tests.schedule_target import END, FIRST_WORD, VOCABULARY, likely_answer

MAX_STEPS = 6_000  # of one plan: with fewer left to do it has come to a halt
MAX_SHOWN = 5  # differences, in the result
NUM_SPARE_BLOCKS = 300  # enough for every request of a plan at a time
HOSTILE = ([-1] * 40, [10**9] * 40, [VOCABULARY] * 9, ["x", None, True], list(range(64)) * 30)


@dataclass(frozen=True)
class Plan:
    """Everything of one run that is not the scheduler's to decide."""

    seed: int
    arguments: dict[str, Any]
    num_blocks: int
    max_draft_tokens: int
    sources: Sources
    asked: tuple[Asked, ...]
    num_in_flight: int = 1
    is_paced: bool = False
    """Whether any number of tokens is left for prompts beside answers, from none on."""


@dataclass
class Result:
    """Sums over plans."""

    plans: int = 0
    answers: int = 0
    sampled_answers: int = 0
    refused_plans: int = 0
    counts: Counts = field(default_factory=Counts)
    differences: list[str] = field(default_factory=list)

    def add(self, counts: Counts) -> None:
        for name, value in vars(counts).items():
            setattr(self.counts, name, getattr(self.counts, name) + value)

    def told(self) -> dict[str, Any]:
        return {
            "drafted": self.counts.drafted,
            "accepted": self.counts.accepted,
            "drafted_with_prompt": self.counts.fused,
            "answers": self.answers,
            "sampled_answers": self.sampled_answers,
            "preemptions": self.counts.preemptions,
            "steps": self.counts.steps,
            "plans": self.plans,
            "refused_plans": self.refused_plans,
            "differences": len(self.differences),
            "first_differences": self.differences[:MAX_SHOWN],
        }


def plan_of(seed: int) -> Plan:
    """A plan, the same for the same seed."""
    dice = random.Random(seed)
    max_model_len = dice.choice([96, 128, 160])
    budget = dice.choice([40, 96, 256, 512])
    arguments: dict[str, Any] = {
        "max_model_len": max_model_len,
        "max_num_batched_tokens": budget,
        "max_num_seqs": dice.choice([2, 8, 16, 16]),
        "enable_prefix_caching": dice.random() < 0.8,
    }
    if dice.random() < 0.3:
        arguments["scheduling_policy"] = "priority"
    if dice.random() < 0.3:
        arguments["long_prefill_token_threshold"] = dice.choice([4, 8, 24])
    num_in_flight = 1
    if dice.random() < 0.05:
        arguments["pipeline_parallel_size"] = num_in_flight = 2
    max_draft_tokens = dice.choice([1, 8, 32, 64])
    if dice.random() < 0.05:
        max_draft_tokens = dice.choice([128, 129, 200])
        arguments |= {"max_num_batched_tokens": 512, "max_model_len": 400}
    num_spare_blocks = dice.choice([2, 4, 8, NUM_SPARE_BLOCKS])
    num_blocks = arguments["max_model_len"] // 16 + num_spare_blocks
    world = _World(
        dice,
        arguments["max_model_len"],
        # A growing prompt keeps its blocks while it waits; with few, vLLM comes to a halt.
        grows=num_spare_blocks == NUM_SPARE_BLOCKS,
        # While one samples, nobody is drafted for on a CPU.
        samples=dice.random() < 0.2,
    )
    return Plan(
        seed,
        arguments,
        num_blocks,
        max_draft_tokens,
        Sources(abstain=dice.random() < 0.2),
        tuple(world.asked(number) for number in range(dice.choice([20, 60, 120]))),
        num_in_flight,
        is_paced=dice.random() < 0.5,
    )


class _World:
    """Requests that share prefixes, streams and moments."""

    def __init__(self, dice: random.Random, max_model_len: int, grows: bool, samples: bool) -> None:
        self._dice = dice
        self._longest = max_model_len
        self._growing_share = 0.3 if grows else 0.0
        self._sampled_share = 0.1 if samples else 0.0
        self._base = self._words(max_model_len)
        self._tails = [self._words(3) for _ in range(4)]
        self._now = 0

    def _words(self, count: int) -> list[int]:
        return [self._dice.randrange(FIRST_WORD, VOCABULARY) for _ in range(count)]

    def asked(self, number: int) -> Asked:
        dice = self._dice
        self._now += dice.choice([0, 0, 0, 0, 1, 3, 10])
        num_turns = dice.choice([2, 3, 5]) if dice.random() < self._growing_share else 1
        turns, now, context = [], self._now, list[int]()
        room = self._longest // num_turns  # of each turn, its answer included if others follow
        for _ in range(num_turns):
            length = min(dice.choice([1, 5, 15, 16, 17, 31, 32, 33, 49, 60]), room // 2)
            prompt = self._prompt(length, first=not context)
            context += prompt
            most = room - length if num_turns > 1 else self._longest
            turns.append(Turn(tuple(prompt), self._params(context, most), now))
            now += dice.choice([0, 1, 5, 40])
        aborted = self._now + dice.randrange(30) if dice.random() < 0.05 else None
        late = (
            ((self._now + dice.randrange(6), tuple(self._draft(context))),)
            if dice.random() < 0.3
            else ()
        )
        return Asked(
            f"request-{number}",
            tuple(turns),
            priority=dice.randrange(3),
            session_id=dice.choice([None, None, None, "session"]),
            aborted_at=aborted,
            late=late,
        )

    def _prompt(self, length: int, first: bool) -> list[int]:
        if not first or self._dice.random() < 0.3:
            return self._words(length)
        tail = self._dice.choice(self._tails) if length > 8 else []
        return [*self._base[: length - len(tail)], *tail]

    def _params(self, prompt: list[int], most: int) -> dict[str, Any]:
        dice = self._dice
        params: dict[str, Any] = {"max_tokens": min(most, dice.choice([1, 2, 10, 60, 60, 300]))}
        if dice.random() < 0.3:
            params["ignore_eos"] = True
        if dice.random() < 0.25:
            params["min_tokens"] = dice.randrange(min(40, params["max_tokens"]) + 1)
        if dice.random() < 0.2:
            params["stop_token_ids"] = self._words(2)
        if dice.random() < self._sampled_share:
            params |= {"temperature": dice.choice([0.5, 1.0, 2.0]), "seed": dice.randrange(99)}
        if dice.random() < 0.95:
            told: dict[str, Any] = {"draft": self._draft(prompt)}
            if dice.random() < 0.8:
                told["stream"] = dice.choice(["a", "b"])
            params["extra_args"] = {"headstart": told}
        return params

    def _draft(self, prompt: list[int]) -> list[Any]:
        dice = self._dice
        if dice.random() < 0.05:
            return list(dice.choice(HOSTILE))
        right = likely_answer(prompt, dice.choice([0, 3, 20, 80, 80]))
        share = dice.choice([0.0, 0.05, 0.2, 0.5, 1.0])
        return [
            dice.choice([END, *self._words(1)]) if dice.random() < share else token
            for token in right
        ]


def play(plan: Plan, max_draft_tokens: int) -> tuple[dict[str, Said], Counts]:
    """What is said to a plan's requests; with no drafts, by vLLM's own scheduler."""
    player = Player(
        scheduler(max_draft_tokens, plan.num_blocks, plan.sources, **plan.arguments),
        plan.num_in_flight,
    )
    if plan.is_paced and max_draft_tokens:
        player.scheduler._paced_steps.pace = AnyPace(plan.seed)
    happenings: list[tuple[int, Callable[[], None]]] = []
    for asked in plan.asked:
        for number, turn in enumerate(asked.turns):
            happenings.append((turn.at, lambda a=asked, n=number: player.add(a, n)))
        if len(asked.turns) > 1:
            last = len(asked.turns)
            happenings.append((asked.turns[-1].at, lambda a=asked, n=last: player.add(a, n)))
        if asked.aborted_at is not None:
            happenings.append((asked.aborted_at, lambda a=asked: player.abort(a.name)))
        for at, draft in asked.late:
            happenings.append((at, lambda a=asked, d=draft: player.post(a.name, d)))
    happenings.sort(key=lambda happening: happening[0])
    for number in range(MAX_STEPS):
        while happenings and happenings[0][0] <= number:
            happenings.pop(0)[1]()
        if not happenings and not player.scheduler.requests and not player.in_flight:
            return player.said, player.counts
        player.step()
    raise AssertionError(f"came to a halt with {len(player.scheduler.requests)} requests")


def compare(plan: Plan, result: Result) -> None:
    """Play a plan both ways and note what differs."""
    result.plans += 1
    try:
        ours, counts = play(plan, plan.max_draft_tokens)
    except DraftingError as refusal:
        result.refused_plans += 1
        expected = plan.num_in_flight > 1 or plan.max_draft_tokens > MAX_VERIFIED_TOKENS
        if not expected:
            result.differences.append(f"seed {plan.seed}: refused without need: {refusal}")
        return
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-3:]
        result.differences.append(f"seed {plan.seed}: our scheduler ended: {' '.join(last)}")
        return
    result.add(counts)
    # With blocks to spare: short of them, and by priority, vLLM itself reads blocks nobody filled.
    alone, _ = play(replace(plan, num_blocks=plan.num_blocks + NUM_SPARE_BLOCKS), 0)
    for asked in plan.asked:
        found, expected = ours[asked.name], alone[asked.name]
        if asked.aborted_at is not None:
            same = all(
                a[: len(b)] == b[: len(a)]
                for a, b in zip(found.turns, expected.turns, strict=False)
            )
        else:
            same = found == expected
            result.answers += len(found.reasons)
            result.sampled_answers += any("seed" in turn.params for turn in asked.turns)
        if not same:
            result.differences.append(f"seed {plan.seed}, {asked}: {found}, alone {expected}")


def fuzz(num_drafted: int, seed: int, on_progress: Callable[[Result], None]) -> Result:
    """Plans until so many tokens were drafted, or until it is interrupted."""
    result = Result()
    try:
        while result.counts.drafted < num_drafted and len(result.differences) < MAX_SHOWN:
            compare(plan_of(seed * 1_000_000 + result.plans), result)
            on_progress(result)
    except KeyboardInterrupt:
        result.plans -= 1  # the last one is not compared
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drafted", type=int, default=100_000, help="tokens to draft")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="directory in which the result is kept")
    options = parser.parse_args()
    logging.getLogger("vllm").setLevel(logging.ERROR)
    begun_s = shown_s = time.monotonic()

    def on_progress(result: Result) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s > 10:
            shown_s = time.monotonic()
            print(f"{result.counts.drafted} drafted, {result.answers} answers", file=sys.stderr)

    result = fuzz(options.drafted, options.seed, on_progress)
    for difference in result.differences:
        print(difference)
    seconds = round(time.monotonic() - begun_s, 1)
    told = {**result.told(), "seed": options.seed, "seconds": seconds}
    command = ["python", "-m", "tests.schedule_fuzz", *sys.argv[1:]]
    if options.output is not None:
        Measurement("schedule_fuzz", command, told).write(options.output)
    print(json.dumps(told))
    return bool(result.differences)


if __name__ == "__main__":
    sys.exit(main())
