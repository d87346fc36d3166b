"""How many facts the lab pair states right on held-out drives, beside a baseline without a clip.

    python -m headstart_lab.measures.scores

500 questions; the facts are those of each model's own reference answers. The blind baseline answers
each question with the answer that is most frequent on training drives. Prints tables, then one line
of JSON.
"""

import argparse
import json
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

from headstart_lab.answering import OpenEngine, answer_all, open_engine
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.measures.questions import held_out_questions, training_answers
from headstart_lab.pair import Pair, find_pair
from headstart_lab.scoring import Reference, Scores, judge, usual_answers

WANTED = {"target": 0.9, "drafter": 0.7}


def main(arguments: Sequence[str] | None = None, start: OpenEngine = open_engine) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=500, help="questions")
    parser.add_argument(
        "--blind-drives", type=int, default=100, help="training drives of the baseline"
    )
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)

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
    figures = {
        "pair": "lab pair" if options.pair is None else options.pair.name,
        "num_questions": len(asked),
        "wanted": WANTED,
        **{name.replace(" ", "_"): asdict(each) for name, each in scores.items()},
    }
    print(json.dumps(figures))


def progress(work: str, done: int, total: int) -> None:
    """On stderr: on a terminal rewrite one line; elsewhere write a line each tenth."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{work} {done}/{total}", end=end, file=sys.stderr, flush=True)
    elif done == total or done % max(1, total // 10) == 0:
        print(f"{work} {done}/{total}", file=sys.stderr, flush=True)


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
            counts = (tally.right, tally.wrong, tally.absent) if tally else ()
            cells.append("/".join(f"{100 * n / sum(counts):.0f}" for n in counts))
        table.add_row(attribute, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
