"""What an event model costs beside a target: all of it, or its tower and projector alone.

    python -m benchmarks.event_model

The drafter's process is started by itself, in turn whole and as a tower, and asked about the same
clips. Start-up is the time until its engine is up, by the wall's clock and of the processor, which
other work on the machine hardly changes. Its memory is taken when it has answered:
PSS counts a page that other processes share in part, RSS in full. Processor time is of a whole
answer's words on the one hand and of a look on the other; the wait is the wall time from the
question until the scheduler's end has heard of it. What the published model would save is computed
from its config, without weights. A table, then one line of JSON, which is also kept in
benchmarks/results.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import psutil
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import MAX_TOKENS, held_out_drive
from headstart_lab.language.questions import Question as LabQuestion
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

from headstart import Clip, EventDrafter, EventTower
from headstart.engine.drafter.channel import ChannelLease, DraftChannel
from headstart.engine.drafter.client import DrafterClient
from headstart.engine.drafter.scheduler_end import SchedulerEnd
from headstart.engine.question import Question
from headstart.models.eventgpt.config import EventChatConfig
from headstart.models.eventgpt.weights import expected_shapes

RESULTS = Path(__file__).parent / "results"
ENGINE = {"enforce_eager": True, "dtype": "float32", "kv_cache_memory_bytes": 2**28}
KINDS = {"whole": EventDrafter, "tower": EventTower}
HEADINGS = (
    "start_s",
    "start_processor_s",
    "pss_mib",
    "rss_mib",
    "processor_ms_a_clip",
    "wait_ms",
)
LANGUAGE_MODEL = "language_model."
QUIET_S = 0.4
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Costs:
    """Of one process, from its start to its end."""

    start_s: float
    start_processor_s: float
    pss_mib: float
    rss_mib: float
    processor_ms_a_clip: float
    wait_ms: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is started")
    parser.add_argument("--clips", type=int, default=12, help="looked at after each start")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    report = StderrProgress()
    clips = [one.clip for one in held_out_drive(1 + options.clips, report=report)]
    found: dict[str, list[Costs]] = {kind: [] for kind in KINDS}
    lease = ChannelLease.take()
    scheduler = SchedulerEnd(lease.channel, resync=False)
    for number in range(options.rounds):
        # Who comes first finds less of the files in the page cache.
        for kind in KINDS if number % 2 else reversed(KINDS):
            model = KINDS[kind](pair.drafter, ENGINE)
            found[kind].append(costs(model, lease.channel, scheduler, clips))
        report("rounds", number + 1, options.rounds)
    lease.close()
    figures = {
        kind: {name: [round(getattr(one, name), 2) for one in all_of] for name in HEADINGS}
        for kind, all_of in found.items()
    }
    table = Table("", *(heading.replace("_", " ") for heading in HEADINGS))
    for kind, row in figures.items():
        table.add_row(kind, *(f"{median(row[name]):.1f}" for name in HEADINGS))
    Console().print(table)
    measurement = Measurement(
        "event_model",
        ["python", "-m", "benchmarks.event_model", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "vllm": ENGINE,
            "clips": options.clips,
            **figures,
            "published_model_computed": parameters(EventChatConfig()),
        },
    )
    measurement.write(options.output)
    print(measurement.line())


def costs(
    model: EventDrafter | EventTower,
    channel: DraftChannel,
    scheduler: SchedulerEnd,
    clips: Sequence[Clip],
) -> Costs:
    """Start its process, show it a clip that does not count and the others, and end it."""
    began_s = time.monotonic()
    with DrafterClient(channel, model) as client:
        client.wait_ready()
        start_s = time.monotonic() - began_s
        assert client.process is not None
        assert client.process.pid is not None
        process = psutil.Process(client.process.pid)
        start_processor_s = processor_s(process)
        first, *others = clips
        list(waits_ms(client, scheduler, process, [first]))
        before = processor_s(process)
        waits = list(waits_ms(client, scheduler, process, others))
        spent_ms = (processor_s(process) - before) * 1e3
        memory = process.memory_full_info()
    mib = 2**20
    return Costs(
        start_s,
        start_processor_s,
        memory.pss / mib,
        memory.rss / mib,
        spent_ms / len(others),
        median(waits),
    )


def waits_ms(
    client: DrafterClient,
    scheduler: SchedulerEnd,
    process: psutil.Process,
    clips: Sequence[Clip],
) -> Iterator[float]:
    """Of each clip, until a first word or what was seen has arrived; each is left to its end."""
    for clip in clips:
        name = f"clip-{time.monotonic()}"
        scheduler.begin(name, name)
        began_s = time.monotonic()
        question = Question(LabQuestion.KEY_ELEMENTS.usual, clip, MAX_TOKENS)
        with client.drafting(name, question):
            while not any(request == name for request, _ in scheduler.heard()):
                if time.monotonic() - began_s > PATIENCE_S:
                    sys.exit("the event model says nothing: its messages are above")
                time.sleep(0.0005)
            yield (time.monotonic() - began_s) * 1e3
            quiet_from, spent = time.monotonic(), processor_s(process)
            while time.monotonic() - quiet_from < QUIET_S:
                time.sleep(QUIET_S / 8)
                if processor_s(process) - spent > 0.02:
                    quiet_from, spent = time.monotonic(), processor_s(process)
        scheduler.end(name)


def processor_s(process: psutil.Process) -> float:
    """Of the process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def parameters(config: EventChatConfig) -> dict[str, Any]:
    """How many are in each part, and what the language model's take in bfloat16."""
    language, others = 0, 0
    for name, shape in expected_shapes(config).items():
        if name.startswith(LANGUAGE_MODEL):
            language += prod(shape)
        else:
            others += prod(shape)
    kept = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    return {
        "language_model": language,
        "tower_and_projector": others,
        "language_model_bf16_gib": round(2 * language / 2**30, 2),
        "tower_and_projector_bf16_gib": round(2 * others / 2**30, 2),
        "kv_cache_bf16_kib_a_token": 2 * kept / 2**10,
    }


if __name__ == "__main__":
    main()
