"""How many facts the lab pair states right on held-out drives, beside a baseline without a clip.

    python -m benchmarks.lab_scores

500 questions; the facts are those of each model's own reference answers. The blind baseline answers
each question with the answer that is most frequent on training drives. Prints tables, then one line
of JSON, which is also kept in benchmarks/results.
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

from benchmarks.lab_questions import held_out_questions, training_answers
from benchmarks.measurement import Measurement, StderrProgress
from rich.console import Console
from rich.table import Table

from headstart_lab.answering import OpenEngine, answer_all, open_engine
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.pair import Pair, find_pair
from headstart_lab.scoring import Reference, Scores, judge, usual_answers

RESULTS = Path(__file__).parent / "results"
WANTED = {"target": 0.9, "drafter": 0.7}


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=500, help="questions")
    parser.add_argument(
        "--blind-drives", type=int, default=100, help="training drives of the baseline"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()

    asked = held_out_questions(options.num, report=progress)
    scores: dict[str, Scores] = {}
    models = (("target", pair.target, TARGET_STYLE), ("drafter", pair.drafter, DRAFTER_STYLE))
    for name, model, style in models:
        references = [Reference(a.question, style.answer(a.clip.scene, a.question)) for a in asked]
        with start(model) as engine:
            answers = answer_all(engine, asked, report=progress)
        scores[name] = judge([answer.text for answer in answers], references)
        usual = usual_answers(training_answers(style, options.blind_drives))
        scores[f"{name} blind"] = judge([usual[a.question] for a in asked], references)

    show(scores)
    measurement = Measurement(
        "lab_scores",
        ["python", "-m", "benchmarks.lab_scores", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "num_questions": len(asked),
            "wanted": WANTED,
            **{name.replace(" ", "_"): asdict(each) for name, each in scores.items()},
        },
    )
    measurement.write(options.output)
    print(measurement.line())


def show(scores: dict[str, Scores]) -> None:
    """Print two tables: by question, and by what the facts are about."""
    table = Table("facts right, by question", *scores)
    for question in sorted(scores["target"].of_question):
        shares = (f"{each.of_question[question]:.1%}" for each in scores.values())
        table.add_row(question.lower().replace("_", " "), *shares)
    table.add_section()
    table.add_row("all", *(f"{each.facts:.1%}" for each in scores.values()))
    table.add_row("word for word", *(f"{each.exact:.1%}" for each in scores.values()))
    table.add_row(
        "wanted", *(f">= {WANTED[name]:.0%}" if name in WANTED else "" for name in scores)
    )
    Console().print(table)

    table = Table("% right/wrong/unsaid", *scores)
    for attribute in sorted({name for each in scores.values() for name in each.of_attribute}):
        cells = []
        for each in scores.values():
            tally = each.of_attribute.get(attribute)
            counts = tally and (tally.right, tally.wrong, tally.absent)
            cells.append("/".join(f"{100 * n / tally.total:.0f}" for n in counts) if counts else "")
        table.add_row(attribute, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
