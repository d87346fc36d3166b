"""Does the lab pair's target give the same tokens on vLLM and in transformers?

    python -m benchmarks.lab_parity

50 held-out clips with a question each, greedy, one at a time. In float32 every token should be the
same. In bf16 the two round differently; the table shows how often an answer differs, and how close
the two tokens were at its first difference. Prints a table, then one line of JSON, which is also
kept in benchmarks/results.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from benchmarks.lab_questions import QUESTIONS_A_CLIP, held_out_questions
from benchmarks.measurement import Measurement, StderrProgress
from benchmarks.parity import Parity, ReferenceTarget, compare
from headstart_lab.answering import MAX_TOKENS, OpenEngine, answer_all, open_engine
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=50, help="clips")
    parser.add_argument("--tokens", type=int, default=MAX_TOKENS, help="longest answer")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()

    asked = held_out_questions(options.num * QUESTIONS_A_CLIP, report=progress)
    asked = asked[::QUESTIONS_A_CLIP]
    found: dict[str, Parity] = {}
    for dtype in ("float32", "bfloat16"):
        with start(pair.target, dtype=dtype) as engine:
            answers = answer_all(
                engine, asked, max_tokens=options.tokens, num_at_once=1, report=progress
            )
        reference = ReferenceTarget(pair.target, dtype)
        spoken = []
        for one in asked:
            spoken.append(reference.answer(one.clip.clip, one.wording, options.tokens))
            progress(f"transformers {dtype}", len(spoken), len(asked))
        found[dtype] = compare([answer.token_ids for answer in answers], spoken)

    table = Table("", *found)
    rows = {
        "answers": lambda p: str(p.num_answers),
        "tokens compared": lambda p: str(p.num_tokens),
        "answers that differ": lambda p: str(len(p.differences)),
        "first differences a token": lambda p: f"{p.rate:.4f}",
        "median margin there, logits": lambda p: margin_of(p),
        "median margin everywhere": lambda p: f"{p.median_margin:.3f}",
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(parity) for parity in found.values()))
    Console().print(table)
    measurement = Measurement(
        "lab_parity",
        ["python", "-m", "benchmarks.lab_parity", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            **{dtype: {**asdict(p), "rate": p.rate} for dtype, p in found.items()},
        },
    )
    measurement.write(options.output)
    print(measurement.line())


def margin_of(parity: Parity) -> str:
    """The median of the margins at the differences."""
    margins = [each.margin for each in parity.differences if each.margin is not None]
    return f"{median(margins):.3f}" if margins else "-"


if __name__ == "__main__":
    main()
