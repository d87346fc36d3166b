"""Tables of what drafters are worth on held-out answers, and the lab pair on held-out drives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures.results import markdown, result
from headstart_research.evaluation.picture import drawn

RUN = "eval_lab-pair"
SEEDS = "eval_lab-pair_three-seeds"
PICTURE = Path("docs/pictures/eval.svg")
WORKLOADS = {"one-question": "one question", "in-turn": "in turn"}


def with_interval(figures: dict[str, Any], over: str, sign: str = "") -> str:
    """A value, and its interval over answers or over streams."""
    value = f"{figures['tokens_per_pass']:{sign}.2f}"
    low, high = figures[f"{over}_low"], figures[f"{over}_high"]
    return value if low is None else f"{value} ({low:.2f} to {high:.2f})"


def drafters(run: Any) -> str:
    """Tokens a pass of each drafter, and where it is hardest."""
    works = [run["summary"][name] for name in WORKLOADS]
    rows = [
        (
            name,
            *(with_interval(work[name], "streams") for work in works),
            *(both(works, name, figure) for figure in ("first_block", "new_scenes", "first_clips")),
            f"{works[0][name]['draft_ms_p50']:.2f}, {works[0][name]['draft_ms_p95']:.2f}",
            both(works, name, "end_to_end") if "end_to_end" in works[0][name] else "",
        )
        for name in works[0]
    ]
    headings = (
        "drafter",
        *(f"{words}: tokens/pass" for words in WORKLOADS.values()),
        "first block",
        "new scenes",
        "first clips",
        "ms a draft p50, p95",
        "end to end",
    )
    return markdown(headings, rows)


def differences(run: Any) -> str:
    """Of two drafters on the same answers."""
    works = [run["differences"][name] for name in WORKLOADS]
    rows = [
        (
            pair,
            *(
                with_interval(work[pair], over, "+")
                for work in works
                for over in ("answers", "streams")
            ),
        )
        for pair in works[0]
    ]
    headings = (
        "tokens/pass more",
        *(f"{words}: by {over}" for words in WORKLOADS.values() for over in ("answer", "stream")),
    )
    return markdown(headings, rows)


def seeds(run: Any) -> str:
    """Of bridges trained alike but for the seed: the mean, and the lowest and the highest."""
    works = [run["bridges"][name] for name in WORKLOADS]
    rows = [
        (name, *(cell for work in works for cell in over_seeds(work[name]))) for name in works[0]
    ]
    headings = (
        "tokens/pass",
        *(
            f"{words}: {column}"
            for words in WORKLOADS.values()
            for column in ("mean (lowest to highest)", "by stream")
        ),
    )
    return markdown(headings, rows)


def over_seeds(figures: dict[str, Any]) -> tuple[str, str]:
    """Mean and range; the interval only of differences."""
    if "streams_low" not in figures:
        values = [f"{figures[key]:.2f}" for key in ("mean", "lowest", "highest")]
        return f"{values[0]} ({values[1]} to {values[2]})", ""
    values = [f"{figures[key]:+.2f}" for key in ("mean", "lowest", "highest")]
    doubt = [f"{figures[key]:+.2f}" for key in ("streams_low", "streams_high")]
    return f"{values[0]} ({values[1]} to {values[2]})", " to ".join(doubt)


def both(works: list[Any], name: str, figure: str) -> str:
    """A figure in both workloads."""
    values = [work[name][figure] for work in works]
    return ", ".join("none" if value is None else f"{value:.2f}" for value in values)


def bridge_drafts() -> str:
    """What a bridge's draft takes: before its network was compiled, and since."""
    runs = [result(name) for name in ("bridge_numpy", "bridge")]
    parts = {
        "draft": "a draft",
        "draft_of_32": "a draft of 32 tokens",
        "reading": "one reading",
        "context": "earlier answers and question, before the first draft",
    }
    rows = [
        (
            f"{label}, ms p50, p95",
            *(f"{run[f'{part}_ms_p50']:.1f}, {run[f'{part}_ms_p95']:.1f}" for run in runs),
        )
        for part, label in parts.items()
    ]
    counts = ("readings_per_draft", "tokens_per_reading", "tokens_per_pass")
    for count in counts:
        rows.append((count.replace("_per_", " a "), *(f"{run[count]:.2f}" for run in runs)))
    return markdown(("", "numpy", "compiled"), rows)


def scores() -> str:
    """Facts that each model gets right, beside a guess that never looks at the clip."""
    run = result("lab_scores")
    rows = [
        (
            model,
            f"{run[model]['facts']:.1%}",
            f"{run[f'{model}_blind']['facts']:.1%}",
            f"{run['wanted'][model]:.0%}",
        )
        for model in ("target", "drafter")
    ]
    first = f"facts right, {run['num_questions']} questions on unseen drives"
    return markdown((first, "lab pair", "never looking", "wanted"), rows)


def picture() -> str:
    """Of both workloads, as `headstart eval --picture` draws it."""
    run = result(RUN)
    return drawn(run["workloads"], run["summary"])


TABLES: dict[str, Callable[[], str]] = {
    "eval-drafters": lambda: drafters(result(RUN)),
    "eval-differences": lambda: differences(result(RUN)),
    "eval-seeds": lambda: seeds(result(SEEDS)),
    "bridge-drafts": bridge_drafts,
    "lab-scores": scores,
}
