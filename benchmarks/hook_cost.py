"""What drafting costs the scheduler, without an engine: microseconds a pass, by batch size.

    python -m benchmarks.hook_cost

First streams that never say anything twice, so that nothing is drafted for them once sources were
tried (`rig/idle_streams.py`), with 1 to 1,024 of them at a time: vLLM's own scheduler,
headstart's with requests that name no stream, and with requests that do. Their passes take turns,
and each is compared with the same pass of vLLM's.

Then streams whose words mostly follow from the last three, so that drafts are often right, at two
batch sizes. Requests are played through vLLM's own scheduler, through headstart's without a
drafter, and through headstart's with memory and ngram.

Timed is all that happens between two passes of the model: laying out a step, and taking in its
tokens, in time on the processor. Only passes that decode for most of the batch count. The target is
a function of its KV cache (`rig/schedule_target.py`): no model's time is in it. Prints one line
of JSON last.
"""

import argparse
import gc
import json
import logging
import time
from random import Random
from statistics import median
from typing import Any

from headstart.engine.options import Sources
from rig.idle_streams import IdleStreams
from rig.schedule_harness import Asked, Player, Turn, scheduler
from rig.schedule_target import FIRST_WORD, VOCABULARY

IDLE_PASSES = {1: 2000, 16: 800, 256: 400, 1024: 56}
"""Of each kind, by batch size. Of 1,024 streams one asks anew in nearly every pass once their first
answers end, so theirs are of before that.
"""
IDLE = (
    ("vLLM's", (0, Sources()), False),
    ("headstart, not tagged", (32, Sources()), False),
    ("headstart, tagged", (32, Sources()), True),
)
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


def idle(batch: int, passes: int) -> dict[str, dict[str, float]]:
    """The second half of so many passes, of all kinds in turn. Their streams say the same words."""
    kinds = {name: IdleStreams(batch, *given, tagged=tagged) for name, given, tagged in IDLE}
    gc.collect()
    gc.freeze()  # what is there already is not gone through in anybody's pass
    for _ in range(passes):
        for streams in kinds.values():
            streams.step()
    gc.unfreeze()
    bare, found = kinds["vLLM's"].passes, {}
    settled = range(len(bare.ended) // 2, len(bare.ended))
    decoding = [place for place in settled if not bare.ended[place]]
    for name, streams in kinds.items():
        spent_s, bare_s = streams.passes.scheduling_s, bare.scheduling_s
        found[name] = {
            "microseconds": round(1e6 * median(spent_s[place] for place in decoding), 1),
            "of vLLM's": round(median(spent_s[place] / bare_s[place] for place in decoding), 3),
            "of vLLM's, where answers end too": round(
                sum(spent_s[place] for place in settled) / sum(bare_s[place] for place in settled),
                3,
            ),
            "drafted": float(sum(streams.passes.drafted[place] for place in settled)),
            "passes": float(len(decoding)),
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=40, help="of each stream")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batch", type=int, action="append", help="of idle streams, as often")
    parser.add_argument("--idle-only", action="store_true", help="nothing that is drafted for")
    options = parser.parse_args()
    logging.getLogger("vllm").setLevel(logging.ERROR)
    idle_figures: dict[str, list[dict[str, dict[str, float]]]] = {}
    for batch in options.batch or IDLE_PASSES:
        for _ in range(options.repeats):
            found = idle(batch, IDLE_PASSES.get(batch, 400))
            idle_figures.setdefault(f"batch {batch}", []).append(found)
            print(f"idle, batch {batch}: {found}", flush=True)
    figures: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    for _ in range(0 if options.idle_only else options.repeats):
        for kind in KINDS:
            for batch in BATCHES:
                took = round(microseconds(kind, batch, options.answers), 1)
                figures[kind].setdefault(f"batch {batch}", []).append(took)
                print(f"{kind}, batch {batch}: {took} us", flush=True)
    result = {"idle": idle_figures, "microseconds_a_pass": figures}
    print(json.dumps({"benchmark": "hook_cost", **result}))


if __name__ == "__main__":
    main()
