"""What pacing prompts beside answers costs and gives, on a simulated clock: nothing is timed.

    python -m tests.soak.prompt_pace [--frontier]

Requests arrive by chance at vLLM's own scheduler and at headstart's: prompts of 400 or 500 tokens,
answers of 10 tokens, one in four of 120. Of a share of them headstart is given the answer as a
draft, and each twelfth word of it is wrong. A pass takes 10 ms, and 0.8 ms for each token of a
prompt in it. Compared is how long first words and whole answers took, all seeds together. With
``--frontier`` the constants of `headstart.engine.prompt_pace` are varied. Prints a line of JSON
last.
"""

import argparse
import json
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from vllm import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from headstart.engine import prompt_pace
from headstart.engine.options import Sources
from headstart.engine.pass_clock import PassClock
from headstart_research.bench.percentiles import percentile
from rig.schedule_harness import BLOCK_SIZE, scheduler
from rig.schedule_target import END, FIRST_WORD, VOCABULARY

PASS_S, PROMPT_TOKEN_S = 0.010, 0.0008
APART_S = 0.55  # between two requests, in the mean
PROMPTS, ANSWERS = (400, 500), (10, 10, 10, 120)
WRONG_EVERY = 12  # words of a draft
NUM_REQUESTS, SEEDS = 120, 8
DRAFTED = (0.0, 0.5, 1.0)
FRONTIER = {"HELD": (0.0, 0.25, 0.5, 1.0, 2.0, 1e9), "SHARE": (1.0, 2.0, 4.0)}
"""Each varied by itself, the others as they are."""


@dataclass(frozen=True)
class Arrival:
    """A request, and what it will be told."""

    at_s: float
    name: str
    num_prompt_tokens: int
    answer: tuple[int, ...]
    draft: tuple[int, ...]


@dataclass(frozen=True)
class Wait:
    """In seconds, from a request's arrival."""

    is_drafted: bool
    is_long: bool
    first_s: float
    answer_s: float


def arrivals(seed: int, share_drafted: float, number: int = NUM_REQUESTS) -> list[Arrival]:
    """The same for the same seed; also the times and lengths, whoever is drafted for."""
    dice, choice, at_s, found = Random(seed), Random(f"{seed} drafted"), 0.0, []
    for place in range(number):
        at_s += dice.expovariate(1 / APART_S)
        prompt, length = dice.choice(PROMPTS), dice.choice(ANSWERS)
        answer = tuple(dice.choices(range(FIRST_WORD, VOCABULARY), k=length))
        draft = tuple(
            word if (n + 1) % WRONG_EVERY else FIRST_WORD + (word + 1) % (VOCABULARY - FIRST_WORD)
            for n, word in enumerate(answer)
        )
        is_drafted = choice.random() < share_drafted
        found.append(Arrival(at_s, f"r{place}", prompt, answer, draft if is_drafted else ()))
    return found


class Simulation:
    """One scheduler, its requests, and the time."""

    def __init__(self, made: Scheduler, asked: list[Arrival]) -> None:
        self.now_s = 0.0
        self._scheduler, self._asked = made, {one.name: one for one in asked}
        self._coming = deque(asked)
        self._first_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}
        self._hasher = get_request_block_hasher(BLOCK_SIZE, sha256)
        if hasattr(made, "_clock"):
            made._clock = PassClock(clock=lambda: self.now_s)

    def play(self) -> list[Wait]:
        """Until every answer is complete."""
        while len(self._ended_s) < len(self._asked):
            while self._coming and self._coming[0].at_s <= self.now_s:
                self._add(self._coming.popleft())
            if self._scheduler.requests:
                self._step()
            else:
                self.now_s = self._coming[0].at_s
        return [
            Wait(
                bool(one.draft),
                len(one.answer) > min(ANSWERS),
                self._first_s[name] - one.at_s,
                self._ended_s[name] - one.at_s,
            )
            for name, one in self._asked.items()
        ]

    def _add(self, one: Arrival) -> None:
        tags = {"headstart": {"draft": list(one.draft)}} if one.draft else None
        params = SamplingParams(
            temperature=0.0, max_tokens=len(one.answer), ignore_eos=True, extra_args=tags
        )
        params.update_from_generation_config({}, END)
        prompt = Random(one.name).choices(range(FIRST_WORD, VOCABULARY), k=one.num_prompt_tokens)
        self._scheduler.add_request(
            Request(
                one.name, prompt, params, None, arrival_time=one.at_s, block_hasher=self._hasher
            )
        )

    def _step(self) -> None:
        step = self._scheduler.schedule()
        prompts = sum(self._num_prompt_tokens(step, name) for name in step.num_scheduled_tokens)
        self.now_s += PASS_S + PROMPT_TOKEN_S * prompts
        names = list(step.num_scheduled_tokens)
        said = [self._said(step, name) for name in names]
        for name, words in zip(names, said, strict=True):
            if words:
                self._first_s.setdefault(name, self.now_s)
        output = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=said,
            logprobs=None,
            prompt_logprobs_dict={},
        )
        self._scheduler.update_from_output(step, output)
        for name in names:
            if name not in self._scheduler.requests:
                self._ended_s[name] = self.now_s

    def _num_prompt_tokens(self, step: SchedulerOutput, name: str) -> int:
        drafted = len(step.scheduled_spec_decode_tokens.get(name, ()))
        own: int = step.num_scheduled_tokens[name] - drafted
        return own if not self._scheduler.requests[name].num_output_tokens else own - 1

    def _said(self, step: SchedulerOutput, name: str) -> list[int]:
        request, draft = self._scheduler.requests[name], step.scheduled_spec_decode_tokens.get(name)
        draft = draft or []
        if request.num_computed_tokens - len(draft) < request.num_tokens:
            return []  # a part of its prompt
        right = self._asked[name].answer[request.num_output_tokens :]
        num_right = next(
            (n for n, word in enumerate(draft) if n >= len(right) or word != right[n]), len(draft)
        )
        return list(right[: num_right + 1])


def waits(ours: bool, seed: int, share_drafted: float, number: int = NUM_REQUESTS) -> list[Wait]:
    """Of one run."""
    made = scheduler(
        32 if ours else 0,
        num_blocks=3000,
        sources=Sources(drafters=()),
        max_model_len=640,
        max_num_seqs=32,
        max_num_batched_tokens=1024,
        enable_prefix_caching=False,
    )
    return Simulation(made, arrivals(seed, share_drafted, number)).play()


@contextmanager
def constant(name: str, value: float) -> Iterator[None]:
    """Another value of a constant of `headstart.engine.prompt_pace`, for a while."""
    before = getattr(prompt_pace, name)
    setattr(prompt_pace, name, value)
    try:
        yield
    finally:
        setattr(prompt_pace, name, before)


def figures(found: list[Wait]) -> dict[str, float]:
    """Medians and 95th percentiles, in seconds."""
    kinds = {
        "first word": [one.first_s for one in found],
        "first word, undrafted": [one.first_s for one in found if not one.is_drafted],
        "first word, drafted": [one.first_s for one in found if one.is_drafted],
        "short answer, undrafted": [
            one.answer_s for one in found if not one.is_drafted and not one.is_long
        ],
        "long answer, undrafted": [
            one.answer_s for one in found if not one.is_drafted and one.is_long
        ],
        "answer, drafted": [one.answer_s for one in found if one.is_drafted],
    }
    return {
        f"{kind}, {name}": round(percentile(values, share), 3)
        for kind, values in kinds.items()
        if values
        for name, share in (("p50", 50), ("p95", 95))
    }


def measured(ours: bool, share_drafted: float, seeds: int) -> dict[str, float]:
    """All seeds together."""
    return figures([one for seed in range(seeds) for one in waits(ours, seed, share_drafted)])


def frontier(seeds: int) -> list[dict[str, Any]]:
    """What each value of a constant gives where every second request is drafted for."""
    rows = []
    for name, values in FRONTIER.items():
        for value in values:
            with constant(name, value):
                rows.append({name: value, **measured(True, 0.5, seeds)})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--frontier", action="store_true", help="vary the constants as well")
    options = parser.parse_args()
    logging.getLogger("vllm").setLevel(logging.ERROR)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for share in DRAFTED:
        cell = rows[f"{share:.0%} drafted"] = {
            "vLLM's": measured(False, share, options.seeds),
            "not paced": {},
            "paced": measured(True, share, options.seeds),
        }
        with constant("HELD", 0.0):
            cell["not paced"] = measured(True, share, options.seeds)
        for kind in cell["paced"]:
            print(
                f"{share:4.0%} {kind:32}", *(f"{name} {cell[name][kind]:7.3f} s" for name in cell)
            )
    varied = frontier(options.seeds) if options.frontier else []
    print(json.dumps({"benchmark": "prompt_pace", "figures_s": rows, "frontier": varied}))


if __name__ == "__main__":
    main()
