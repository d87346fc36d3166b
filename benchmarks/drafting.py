"""How long a proposal takes: the board's, the memory's, the cascade's. A line of JSON last.

python -m benchmarks.drafting --num-answers 10000 --num-tenant-answers 100000

Answers are random walks over few words, so that every context is known and ambiguous: worse for
the search than a camera's answers are.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

from headstart.speculation.board import DraftBoard
from headstart.speculation.cascade import Cascade
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.memory import Memory
from headstart.speculation.ngram import Ngram
from headstart.speculation.stream_memory import StreamMemory, quote
from headstart.speculation.vocabulary import TextVocabulary

Given = TypeVar("Given")

TEXT = TextVocabulary(32_000)
CAMERA = StreamKey("tenant", "camera")
STREAM_ANSWERS = 500  # of each camera of the tenant with many


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-answers", type=int, default=10_000)
    parser.add_argument("--num-tenant-answers", type=int, default=100_000)
    parser.add_argument("--num-words", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2_000)
    options = parser.parse_args()
    rng = Random(0)
    followers = [rng.choices(range(options.num_words), k=3) for _ in range(options.num_words)]

    def answer(length: int = 64) -> list[int]:
        words = [rng.randrange(options.num_words)]
        while len(words) < length:
            words.append(rng.choice(followers[words[-1]]))
        return words

    figures: dict[str, float] = {"num_answers": options.num_answers}

    draft = answer()
    board = DraftBoard(TEXT)
    for source in ("memory", "eventgpt", "ngram"):
        board.post(Draft(tuple(draft), source, 0.0))
    figures |= measured(
        "board_us",
        options.repeats,
        lambda: rng.randrange(64),
        lambda n: board.propose(draft[:n], 64),
    )
    figures |= measured(
        "board_resync_us",
        options.repeats,
        lambda: [1, *answer(63)],
        lambda confirmed: board.propose(confirmed, 64),
    )

    memory = StreamMemory(options.num_answers)
    started = time.perf_counter()
    for _ in range(options.num_answers):
        memory.learn("q", answer())
    figures["memory_learn_us"] = (time.perf_counter() - started) / options.num_answers * 1e6
    figures |= measured(
        "memory_us",
        options.repeats,
        lambda: answer(rng.randrange(64) + 1),
        lambda confirmed: quote((memory,), "q", confirmed, 64),
    )

    # One word only: every place matches to the full depth and has little to copy.
    monotonous = StreamMemory(options.num_answers)
    for _ in range(options.num_answers):
        monotonous.learn("q", [5] * 64)
    figures |= measured(
        "memory_worst_us",
        options.repeats,
        lambda: [5] * 64,
        lambda confirmed: quote((monotonous,), "q", confirmed, 64),
    )

    figures["num_tenant_answers"] = options.num_tenant_answers
    tenant = Memory(max_bytes=1 << 40, max_tenant_bytes=1 << 40)
    num_streams = max(2, options.num_tenant_answers // STREAM_ANSWERS)
    for number in range(options.num_tenant_answers):
        tenant.begin(DraftRequest("told", StreamKey("tenant", str(number % num_streams)), "q"))
        tenant.finish("told", answer())
    figures["tenant_mib"] = tenant.num_bytes / (1 << 20)
    for stream in range(num_streams):
        tenant.begin(DraftRequest(str(stream), StreamKey("tenant", str(stream)), "q"))
    tenant.begin(DraftRequest("new", StreamKey("tenant", "new"), "q"))
    figures |= measured(
        "warm_memory_us",
        options.repeats,
        lambda: (str(rng.randrange(num_streams)), answer(rng.randrange(64) + 1)),
        lambda asked: tenant.propose(*asked, 64),
    )
    figures |= measured(
        "warm_memory_new_stream_us",
        options.repeats,
        lambda: answer(rng.randrange(64) + 1),
        lambda confirmed: tenant.propose("new", confirmed, 64),
    )

    cascade = Cascade([Memory(), Ngram()], TEXT)
    for number in range(512):
        cascade.begin(DraftRequest(str(number), CAMERA, "q"))
        cascade.finish(str(number), answer())
    cascade.begin(DraftRequest("asked", CAMERA, "q"))
    cascade.post("asked", Draft(tuple(draft), "eventgpt", 0.0))
    figures |= measured(
        "cascade_us",
        options.repeats,
        lambda: answer(rng.randrange(64) + 1),
        lambda confirmed: cascade.propose("asked", confirmed, 64),
    )
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))


def measured(
    name: str, repeats: int, given: Callable[[], Given], work: Callable[[Given], object]
) -> dict[str, float]:
    """Median, 99th percentile and longest wall time, and the longest time on the processor.

    In microseconds; what is given is not timed. Where other work shares the cores the longest
    wall time is a turn of the scheduler's, not the proposal's own.
    """
    gc.collect()
    gc.disable()
    wall, processor = [], []
    for _ in range(repeats):
        argument = given()
        started, started_cpu = time.perf_counter(), time.thread_time()
        work(argument)
        processor.append((time.thread_time() - started_cpu) * 1e6)
        wall.append((time.perf_counter() - started) * 1e6)
    gc.enable()
    wall.sort()
    figures = {
        f"{name}_p50": wall[repeats // 2],
        f"{name}_p99": wall[repeats * 99 // 100],
        f"{name}_max": wall[-1],
        f"{name}_cpu_max": max(processor),
    }
    print("  ".join(f"{label} {value:.1f}" for label, value in figures.items()))
    return figures


if __name__ == "__main__":
    main()
