"""What drafting costs the scheduler, without an engine: microseconds a pass, at two batch sizes.

    python -m benchmarks.hook_cost

Requests are played through vLLM's own scheduler, through headstart's without a drafter, and through
headstart's with memory and ngram. Timed is all that happens between two passes of the model: laying
out a step, and taking in its tokens, in time on the processor. Only passes that decode for most of
the batch count. The target is a function of its KV cache (`tests/schedule_target.py`): no model's
time is in it. Prints one line of JSON last.
"""

import argparse
import json
import logging
import time
from random import Random
from statistics import median
from typing import Any

from tests.schedule_harness import Asked, Player, Turn, scheduler
from tests.schedule_target import FIRST_WORD, VOCABULARY

from headstart.engine.options import Sources

BATCHES = (1, 16)
KINDS = {
    "vLLM's": (0, Sources()),
    "without a drafter": (32, Sources(drafters=())),
    "memory and ngram": (32, Sources(abstain=False)),
    "memory and ngram, budgeted": (32, Sources()),
}
NUM_TOKENS = 60
WARMUP_ANSWERS = 8
FULL = 0.75  # of the batch: some answers are complete before the others


def microseconds(kind: str, batch: int, answers: int) -> float:
    """The median pass of so many requests at a time, each the next of its stream."""
    max_draft_tokens, sources = KINDS[kind]
    made = scheduler(max_draft_tokens, num_blocks=600, sources=sources, max_num_seqs=16)
    player, spent, dice = Player(made), list[float](), Random(0)
    schedule, update = made.schedule, made.update_from_output
    laid_out_s = 0.0

    def timed_schedule(*args: Any) -> Any:
        nonlocal laid_out_s
        begun_s = time.thread_time()
        step = schedule(*args)
        laid_out_s = time.thread_time() - begun_s
        return step

    def timed_update(step: Any, output: Any) -> Any:
        begun_s = time.thread_time()
        told = update(step, output)
        is_full = len(step.num_scheduled_tokens) >= FULL * batch
        if counts and is_full and not step.scheduled_new_reqs:
            spent.append(laid_out_s + time.thread_time() - begun_s)
        return told

    made.schedule, made.update_from_output = timed_schedule, timed_update
    for number in range(answers):
        counts = number >= WARMUP_ANSWERS
        for stream in range(batch):
            tags = {"headstart": {"stream": f"camera-{stream}", "question": "q"}}
            params = {"max_tokens": NUM_TOKENS, "ignore_eos": True, "extra_args": tags}
            prompt = tuple(dice.choices(range(FIRST_WORD, VOCABULARY), k=12))
            player.add(Asked(f"{stream}/{number}", (Turn(prompt, params),)))
        while made.requests:
            player.step()
    return median(spent) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=40, help="of each stream")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("vllm").setLevel(logging.ERROR)
    figures: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    for _ in range(options.repeats):
        for kind in KINDS:
            for batch in BATCHES:
                took = round(microseconds(kind, batch, options.answers), 1)
                figures[kind].setdefault(f"batch {batch}", []).append(took)
                print(f"{kind}, batch {batch}: {took} us", flush=True)
    print(json.dumps({"benchmark": "hook_cost", "microseconds_a_pass": figures}))


if __name__ == "__main__":
    main()
