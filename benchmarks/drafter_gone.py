"""What is waited for where the drafter is stopped or killed, beside one never started.

    python -m benchmarks.drafter_gone

Two targets, one of them with a drafter, asked the same in turn. Just before each question the
drafter is frozen (SIGSTOP) or killed (SIGKILL, so that it is mostly starting anew). Nobody else
drafts, so both targets take as many passes. The wait is the difference between the two answers'
wall times, beside one of the target's steps. A table, then one line of JSON, which is also kept
in benchmarks/results.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import numpy as np
import psutil
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import MAX_TOKENS, held_out_drive
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

from headstart import Answer, Clip, Headstart
from headstart.answers.timeline import Stage
from headstart.bench.methods import SILENT, Method, Rig

RESULTS = Path(__file__).parent / "results"
ENGINE = {"enforce_eager": True, "dtype": "float32", "kv_cache_memory_bytes": 2**29}
ALONE = Method("none", "no drafter was ever started", SILENT)
BESIDE = Method("eventgpt", "a drafter in a process of its own", SILENT, True)
STATES = {"stopped": signal.SIGSTOP, "killed": signal.SIGKILL}
WARM_UP = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=40, help="questions in each state")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    rig = Rig(str(pair.target), str(pair.drafter), vllm=ENGINE, drafter_vllm=ENGINE)
    num_clips = WARM_UP + options.num
    clips = held_out_drive(num_clips * len(STATES), report=StderrProgress())
    figures: dict[str, Any] = {}
    with rig.start(ALONE) as alone, rig.start(BESIDE) as beside:
        for number, (state, sent) in enumerate(STATES.items()):
            shown = [one.clip for one in clips[number * num_clips : (number + 1) * num_clips]]
            figures[state] = compared(alone, beside, shown, sent)

    table = Table("drafter", "wait ms, median", "p5", "p95", "a step ms", "answers", "other words")
    for state, found in figures.items():
        spread = (f"{found['wait_ms'][name]:.1f}" for name in ("median", "p5", "p95"))
        counts = (str(found["answers"]), str(found["differing"]))
        table.add_row(state, *spread, f"{found['step_ms']:.1f}", *counts)
    Console().print(table)
    measurement = Measurement(
        "drafter_gone",
        ["python", "-m", "benchmarks.drafter_gone", *(arguments or sys.argv[1:])],
        {"pair": "lab pair" if options.pair is None else options.pair.name, **figures},
    )
    measurement.write(options.output)
    print(measurement.line())


def compared(
    alone: Headstart, beside: Headstart, clips: Sequence[Clip], sent: signal.Signals
) -> dict[str, Any]:
    """Both asked about each clip, now one first, now the other."""
    waits, steps, num_differing = [], [], 0
    for number, clip in enumerate(clips):
        found: dict[bool, tuple[Answer, float]] = {}
        for drafted in (False, True) if number % 2 else (True, False):
            if drafted:
                signal_drafters(sent)
            found[drafted] = timed(beside if drafted else alone, clip)
        (without, without_s), (gone, gone_s) = found[False], found[True]
        num_differing += without.token_ids != gone.token_ids
        if number >= WARM_UP:
            waits.append((gone_s - without_s) * 1e3)
            num_steps = max(1, len(without.token_ids) - 1)
            steps.append(without.timeline.duration_s(Stage.DECODE) / num_steps * 1e3)
    p5, median, p95 = np.quantile(waits, (0.05, 0.5, 0.95))
    return {
        "wait_ms": {"median": round(median, 2), "p5": round(p5, 2), "p95": round(p95, 2)},
        "step_ms": round(float(np.median(steps)), 2),
        "answers": len(waits),
        "differing": num_differing,
        "waits_ms": [round(wait, 2) for wait in waits],
    }


def timed(headstart: Headstart, clip: Clip) -> tuple[Answer, float]:
    """An answer, and how long it took."""
    began_s = time.perf_counter()
    answer = headstart.ask(clip, Question.KEY_ELEMENTS.usual, max_tokens=MAX_TOKENS)
    return answer, time.perf_counter() - began_s


def signal_drafters(sent: signal.Signals) -> None:
    """To every drafter that runs under this process now."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it was ending by itself
            if any("headstart.engine.drafter.process" in word for word in child.cmdline()):
                child.send_signal(sent)


if __name__ == "__main__":
    main()
