"""A bench played by arithmetic: an engine with known costs, drafts with known survival, noise."""

import random
from dataclasses import replace

from headstart_research.bench.result import BARE, BenchResult, Block, PlayedLoad
from headstart_research.bench.sample import Sample
from headstart_research.planning.costs import Costs

COSTS = Costs(
    prefill_s=0.300,
    step_s=0.020,
    verify_token_s=0.0003,
    verify_pass_s=0.0008,
    overhead_s=0.004,
)
METHODS = {BARE: 0.0, "none": 0.0, "memory": 0.85, "wrong": 0.0}
DRAFT = 16


def played_sample(rng, method: str, beside: str, place, workload: str, costs=COSTS) -> Sample:
    """One answer, pass by pass; ``method`` says how often a drafted token is right."""
    number, stream, index = place
    num_tokens = random.Random(repr(place)).randint(20, 60)
    chance, drafts = METHODS[method], method not in (BARE, "none")
    accepted, drafted, said = [], [], 0
    seconds = first_s = costs.prefill_s + (0 if method == BARE else costs.overhead_s)
    while said < num_tokens:
        length = min(DRAFT, num_tokens - said - 1) if drafts else 0
        right = 0
        while right < length and rng.random() < chance:
            right += 1
        cost_s = costs.pass_s(length) if said else costs.pass_s(length) - costs.step_s
        seconds += cost_s
        if not said:
            first_s = seconds
        accepted.append(right)
        if length:
            drafted.append(length)
        said += 1 + right
    noise = rng.uniform(0.98, 1.02)
    seconds, first_s = seconds * noise, first_s * noise
    return Sample(
        workload=workload,
        method=method,
        beside=beside,
        round=number,
        stream=stream,
        index=index,
        settled=index >= 2,
        end_to_end_s=seconds,
        first_token_s=first_s,
        num_tokens=num_tokens,
        num_prompt_tokens=2076,
        num_cached_tokens=0,
        accepted=tuple(accepted),
        drafted=tuple(drafted),
        first_drafted=drafted[0] if drafted else 0,
        spans=(
            ("target", "load", 0.0, 0.01),
            ("target", "preprocess", 0.01, 0.03),
            ("target", "vision", 0.03, 0.1),
            ("target", "prefill", 0.1, first_s),
            ("target", "decode", first_s, seconds),
            *((("drafter", "prefill", 0.02, 0.1), ("drafter", "decode", 0.1, 0.25)) * drafts),
        ),
        words=f"{place}",
    )


def played_result(seed: int = 0, workloads=("fixed", "streams-2"), costs=COSTS) -> BenchResult:
    """Two rounds of twelve answers; the second workload has two streams."""
    rng, samples, blocks = random.Random(seed), [], []
    for workload in workloads:
        for beside in [name for name in METHODS if name != BARE]:
            for number in range(2):
                for method in (BARE, beside):
                    taken = [
                        played_sample(rng, method, beside, (number, s, i), workload, costs)
                        for s in range(2 if workload.startswith("streams") else 1)
                        for i in range(12)
                    ]
                    samples += taken
                    seconds = sum(sample.end_to_end_s for sample in taken)
                    tokens = sum(sample.num_tokens for sample in taken)
                    blocks.append(Block(workload, method, beside, number, seconds, tokens))
    return BenchResult(
        environment={"date": "2026-11-15 12:00 UTC", "machine": "arithmetic", "command": "played"},
        samples=tuple(samples),
        blocks=tuple(blocks),
        notes=("suffix (vLLM) was not measured: <not installed>",),
        workloads={name: f"played {name}" for name in workloads},
        methods={name: f"plays {name}" for name in METHODS},
    )


OPEN_SHARES = {f"open-4 at {share}": share for share in (0.5, 0.7, 0.85, 0.95)}
OPEN_METHODS = {BARE: 1.0, "none": 1.02, "memory": 0.7}
"""The share of bare vLLM's capacity that an engine needs for the same questions."""
CAPACITY = 2.0


def played_open_result(seed: int = 0) -> BenchResult:
    """Four cameras at four loads and in bursts: a wait grows as the queue of a busy engine does."""
    rng, samples, blocks = random.Random(seed), [], []
    for workload, share in {**OPEN_SHARES, "open-4 in bursts": 0.7}.items():
        length_s = 4 * 12 / (share * CAPACITY)
        for beside in [name for name in OPEN_METHODS if name != BARE]:
            for method in (BARE, beside):
                queue = (
                    1 / (1 - OPEN_METHODS[method] * share) * (1.5 if "bursts" in workload else 1)
                )
                for place in [(0, stream, index) for stream in range(4) for index in range(12)]:
                    sample = played_sample(rng, method, beside, place, workload)
                    late = 1 + (queue - 1) * rng.uniform(0.3, 1.7)
                    samples.append(
                        replace(
                            sample,
                            end_to_end_s=sample.end_to_end_s * late,
                            first_token_s=sample.first_token_s * late,
                        )
                    )
                tokens = sum(s.num_tokens for s in samples[-48:] if s.settled)
                blocks.append(Block(workload, method, beside, 0, length_s * 10 / 12, tokens))
    loads = [
        PlayedLoad(name, "open-4", CAPACITY, share * CAPACITY, 1)
        for name, share in OPEN_SHARES.items()
    ]
    return BenchResult(
        environment={"date": "2026-11-17 12:00 UTC", "machine": "arithmetic", "command": "played"},
        samples=tuple(samples),
        blocks=tuple(blocks),
        workloads={name: f"played {name}" for name in [*OPEN_SHARES, "open-4 in bursts"]},
        methods={name: f"plays {name}" for name in OPEN_METHODS},
        loads=(*loads, PlayedLoad("open-4 in bursts", "open-4", CAPACITY, 0.7 * CAPACITY, 2)),
    )
