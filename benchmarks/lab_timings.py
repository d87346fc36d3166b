"""How long a prefill and a decode step of the lab pair take on vLLM, with one core each.

    python -m benchmarks.lab_timings --core 1

Each model runs alone on its engine, one clip at a time, without caches. Prints a table, which shows
the wanted proportions too, then one line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from benchmarks.engine_times import EngineTimes
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import Asked, OpenEngine, answer_all, held_out_drive, open_engine
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
QUESTION = Question.KEY_ELEMENTS
WARM_UP = 3
STEP_OF_AN_EMPTY_MODEL_MS = 4.7


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--core", type=int, required=True, help="the core on which the engine runs")
    parser.add_argument("--num", type=int, default=40, help="clips that are timed")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()
    # The engine's process reads it when it starts.
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = str(options.core)

    clips = held_out_drive(WARM_UP + options.num, report=progress)
    asked = [Asked(clip, QUESTION, QUESTION.usual) for clip in clips]
    times: dict[str, EngineTimes] = {}
    for name, model in (("target", pair.target), ("drafter", pair.drafter)):
        with start(model, enable_prefix_caching=False) as engine:
            answers = answer_all(engine, asked, num_at_once=1, report=progress)
        times[name] = EngineTimes.of(answers[WARM_UP:])

    table = Table("one core", "median ms", "p10", "p90", "answers")
    for name, each in times.items():
        for part in ("prefill", "vision", "step"):
            spread = getattr(each, part)
            label = f"{name} {'of it ' if part == 'vision' else ''}{part}"
            table.add_row(
                label,
                *(f"{value:.2f}" for value in (spread.median, spread.p10, spread.p90)),
                str(spread.num),
            )
    Console().print(table)
    wanted = judged(times["target"], times["drafter"])
    table = Table("proportion", "measured", "wanted", "kept")
    for name, value, limits, kept in wanted:
        table.add_row(name, f"{value:.2f}", limits, "yes" if kept else "no")
    Console().print(table)
    measurement = Measurement(
        "lab_timings",
        ["python", "-m", "benchmarks.lab_timings", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "core": options.core,
            "milliseconds": {name: asdict(each) for name, each in times.items()},
            "proportions": {
                name: {"measured": round(value, 3), "wanted": limits, "kept": kept}
                for name, value, limits, kept in wanted
            },
        },
    )
    measurement.write(options.output)
    print(measurement.line())


def judged(target: EngineTimes, drafter: EngineTimes) -> list[tuple[str, float, str, bool]]:
    """What the lab wants of the pair: its proportions near the real pair's."""
    steps = target.prefill.median / target.step.median
    fixed = target.step.median / STEP_OF_AN_EMPTY_MODEL_MS
    share = drafter.prefill.median / target.prefill.median
    return [
        ("target's prefill in its steps", steps, "12 to 30", 12 <= steps <= 30),
        ("target's step over an empty model's 4.7 ms", fixed, ">= 2", fixed >= 2),
        ("drafter's prefill over the target's", share, "<= 0.25", share <= 0.25),
    ]


if __name__ == "__main__":
    main()
