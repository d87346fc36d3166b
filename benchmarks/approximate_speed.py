"""How much sooner approximate answers come: wall time beside the exact ones and bare vLLM.

    python -m benchmarks.approximate_speed

One question about each second of a held-out drive. Each way has a session and a memory of its own,
on the same engine; bare vLLM is a second engine, without headstart. Every clip is asked in all ways
before the next one, in an order that rotates. Prints a table, then one line of JSON, which is also
kept in benchmarks/results.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from benchmarks.approximate_facts import started
from benchmarks.approximate_ways import WHOLE, all_ways
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import MAX_TOKENS, held_out_drive, open_engine
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

from headstart.answers.answer import Answer
from headstart.answers.timeline import Stage
from headstart.bench.intervals import ratio_of_medians

RESULTS = Path(__file__).parent / "results"
BARE = "bare vLLM, whole clip"
WAYS = ("events", "even 50%", "frames", "short clip")
MAX_DRAFT_TOKENS = 32


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--clips", type=int, default=24, help="timed, after two that are not")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress, question = StderrProgress(), Question.DESCRIBE.value[0]
    clips = held_out_drive(options.clips + 2, skip=3, report=progress)
    ways = [way for way in all_ways() if way.name == WHOLE or way.name.startswith(WAYS)]

    answers: dict[str, list[Answer]] = defaultdict(list)
    with (
        open_engine(pair.target) as bare,
        started(pair.target, max_draft_tokens=MAX_DRAFT_TOKENS) as headstart,
    ):
        askers = {way.name: (way, way.session(headstart)) for way in ways}
        names = [BARE, *askers]
        for number, clip in enumerate(clips):
            turn = number % len(names)
            for name in [*names[turn:], *names[:turn]]:
                if name == BARE:
                    said = bare.ask(clip.clip, question, max_tokens=MAX_TOKENS)
                else:
                    way, session = askers[name]
                    said = session.ask(way.clip(clip.clip), question, max_tokens=MAX_TOKENS)
                if number >= 2:
                    answers[name].append(said)
            progress("asking", number + 1, len(clips))

    figures = {name: timed(answers[name], answers[BARE], answers[WHOLE]) for name in names}
    show(figures)
    measurement = Measurement(
        "eval_approximate_speed",
        ["python", "-m", "benchmarks.approximate_speed", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "num_clips": options.clips,
            "ways": figures,
        },
    )
    measurement.write(options.output)
    print(measurement.line())


def first_token_s(answer: Answer) -> float:
    """From the question to the end of the prompt, with which the first token comes."""
    ends = [span.end_s for span in answer.timeline.spans if span.stage is Stage.PREFILL]
    return max(ends) - answer.timeline.start_s


def timed(
    answers: Sequence[Answer], bare: Sequence[Answer], whole: Sequence[Answer]
) -> dict[str, Any]:
    """The figures of one way: medians, and how many times sooner than the others."""
    total = [answer.timeline.total_s for answer in answers]
    first = [first_token_s(answer) for answer in answers]
    return {
        "last_word_ms": 1e3 * median(total),
        "first_token_ms": 1e3 * median(first),
        "over_bare": asdict(ratio_of_medians([a.timeline.total_s for a in bare], total)),
        "over_whole": asdict(ratio_of_medians([a.timeline.total_s for a in whole], total)),
        "first_over_whole": asdict(ratio_of_medians([first_token_s(a) for a in whole], first)),
        "prompt_tokens": sum(a.num_prompt_tokens for a in answers) / len(answers),
        "cached_tokens": sum(a.num_cached_tokens for a in answers) / len(answers),
        "passes": sum(a.num_passes for a in answers) / len(answers),
    }


def show(figures: dict[str, dict[str, Any]]) -> None:
    """Print a table."""
    table = Table("shown", "first token", "last word", "x bare", "x whole clip", "passes")
    for name, each in figures.items():
        table.add_row(
            name,
            f"{each['first_token_ms']:.0f} ms",
            f"{each['last_word_ms']:.0f} ms",
            f"{each['over_bare']['value']:.2f}",
            f"{each['over_whole']['value']:.2f}",
            f"{each['passes']:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
