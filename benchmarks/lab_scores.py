"""How much of what the lab pair says is so, on drives it never saw, beside one who never looks.

    python benchmarks/lab_scores.py

500 questions, each model held to the facts of its own house. The blind baseline gives each
question the answer that training drives have most often. Tables, then one line of JSON, which is
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

from rich.console import Console
from rich.table import Table

from headstart.lab.answering import OpenEngine, answer_all, held_out_questions, open_engine
from headstart.lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart.lab.measurement import Measurement, StderrProgress
from headstart.lab.pair import Pair, find_pair
from headstart.lab.scoring import Reference, Scores, judge, said_in_training, usual_answers

RESULTS = Path(__file__).parent / "results"
WANTED = {"target": 0.9, "drafter": 0.7}


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=500, help="questions")
    parser.add_argument("--blind-drives", type=int, default=100, help="what the blind one knows")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()

    asked = held_out_questions(options.num, report=progress)
    scores: dict[str, Scores] = {}
    houses = (("target", pair.target, TARGET_STYLE), ("drafter", pair.drafter, DRAFTER_STYLE))
    for name, model, style in houses:
        references = [Reference(a.question, style.answer(a.clip.scene, a.question)) for a in asked]
        with start(model) as engine:
            answers = answer_all(engine, asked, report=progress)
        scores[name] = judge([answer.text for answer in answers], references)
        usual = usual_answers(said_in_training(style, options.blind_drives))
        scores[f"{name} blind"] = judge([usual[a.question] for a in asked], references)

    show(scores)
    measurement = Measurement(
        "lab_scores",
        sys.argv if arguments is None else ["lab_scores.py", *arguments],
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
    """Two tables for a person."""
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
