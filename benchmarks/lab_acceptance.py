"""How many tokens of the lab pair's target are accepted from different drafts.

    python -m benchmarks.lab_acceptance

One question about 300 consecutive clips of a held-out drive. Drafts are the drafter's answer, the
previous answer, the best earlier answer, and a memory of recent suffixes; a 5-gram trained on 4,000
answers of training drives guesses without a clip. The same figures for the reference answers, and
for a real 7B pair on DSEC, are shown beside them. Prints a table, then one line of JSON, which is
also kept in benchmarks/results.
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

from benchmarks.difficulty import (
    MAX_TOKENS,
    difficulty_of,
    measure_difficulty,
    reference_answers,
)
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import Asked, OpenEngine, answer_all, held_out_drive, open_engine
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from headstart_lab.split import Split
from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer

RESULTS = Path(__file__).parent / "results"
QUESTION = Question.KEY_ELEMENTS


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=300, help="clips")
    parser.add_argument("--drive", type=int, default=0, help="which of the held-out drives")
    parser.add_argument(
        "--other-drives", type=int, default=100, help="drives the 5-gram is trained on"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()

    clips = held_out_drive(options.num, options.drive, progress)
    asked = [Asked(clip, QUESTION, QUESTION.usual) for clip in clips]
    tokenizer = AutoTokenizer.from_pretrained(pair.target)
    said: dict[str, list[tuple[int, ...]]] = {}
    for name, model in (("target", pair.target), ("drafter", pair.drafter)):
        with start(model) as engine:
            answers = answer_all(engine, asked, max_tokens=MAX_TOKENS, report=progress)
        # Without the end of sequence.
        said[name] = [
            tuple(token for token in answer.token_ids if token != tokenizer.eos_token_id)
            for answer in answers
        ]
    others = reference_answers(tokenizer, options.other_drives, QUESTION)
    measured = difficulty_of([said["target"]], [said["drafter"]], others)
    (seed,) = Split.HELD_OUT.seeds(1, skip=options.drive)
    truth = measure_difficulty(tokenizer, [seed], options.num, options.other_drives, QUESTION)

    table = Table(f"{options.num} clips, one question", "pair", "reference answers", "real 7B pair")
    for (name, pairs, real), (_, truths, _) in zip(measured.rows(), truth.rows(), strict=True):
        table.add_row(name, f"{pairs:.3f}", f"{truths:.3f}", real)
    Console().print(table)
    measurement = Measurement(
        "lab_acceptance",
        ["python", "-m", "benchmarks.lab_acceptance", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "question": QUESTION.usual,
            "num_clips": options.num,
            "seed": seed,
            "mean_tokens": sum(map(len, said["target"])) / max(1, len(said["target"])),
            "measured": asdict(measured),
            "truth": asdict(truth),
            "real": {name: float(real) for name, _, real in measured.rows()},
        },
    )
    measurement.write(options.output)
    print(measurement.line())


if __name__ == "__main__":
    main()
