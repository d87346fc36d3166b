"""The table and the picture of docs/approximate.md: what leaving out patches costs in facts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures.picture import STYLE, line, rect, text
from benchmarks.figures.results import markdown, result

from headstart.bench.svg import Scale

FACTS = "eval_approximate_facts"
PICTURE = Path("docs/pictures/approximate.svg")
WHOLE = "whole clip"
WORDS = {
    WHOLE: "the whole clip, exact",
    "events": "patches that changed",
    "even": "patches drawn evenly",
    "frames": "frames by what happened",
    "short clip": "a clip of fewer frames",
    "oldest whole": "changes since the oldest frame",
    "KV bridge": "nothing: keys and values guessed from events",
}
COLOURS = {"events": "draft", "even": "pass", "frames": "prefill", "short clip": "soft"}
LABELS = {"events": (-8, 4, "end"), "even": (8, 14, "start"), "frames": (8, 6, "start")}
"""Where the words of a point stand beside it."""
WIDTH, HEIGHT = 820, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 30, 82, 300


def in_order(run: Any) -> dict[str, Any]:
    """The ways of a run, by kind; within a kind as they were measured."""
    kinds = list(WORDS)
    return dict(sorted(run["ways"].items(), key=lambda way: kinds.index(kind(way[0]))))


def kind(name: str) -> str:
    """What a way belongs to: its name without the budget."""
    return next(each for each in WORDS if name.startswith(each))


def label(name: str) -> str:
    """A way in words."""
    return f"{WORDS[kind(name)]}{name.removeprefix(kind(name)).replace(' ', ', ', 1)}"


def facts(run: Any) -> str:
    """Facts right, and how much the answers differ."""
    ways = in_order(run)
    whole = ways[WHOLE]["facts"]
    rows = [
        (
            label(name),
            f"{each['prompt_tokens']:.0f}",
            f"{each['facts']:.1%}",
            "" if name == WHOLE else lost(each, whole),
            f"{each['same_answer']:.0%}",
        )
        for name, each in ways.items()
    ]
    headings = (
        f"lab pair, {run['num_questions']} questions: shown",
        "prompt tokens",
        "facts right",
        "points lost",
        "same answer",
    )
    return markdown(headings, rows)


def lost(figures: Any, whole: float) -> str:
    """Points of facts that a way loses, with the interval."""
    low, high = (100 * figures[f"less_than_whole_{end}"] for end in ("low", "high"))
    return f"{100 * (whole - figures['facts']):.1f} ({low:.1f} to {high:.1f})"


def picture() -> str:
    """Facts right against the tokens of the prompt."""
    ways = result(FACTS)["ways"]
    shares = [each["facts"] for name, each in ways.items() if kind(name) in COLOURS]
    whole = ways[WHOLE]
    low, high = min(shares), max(*shares, whole["facts"])
    margin = 0.08 * (high - low)
    across = Scale(0.0, 1.05 * whole["prompt_tokens"], LEFT, WIDTH - RIGHT)
    up = Scale(low - margin, high + margin, BOTTOM, TOP)
    parts = [rect(0, 0, WIDTH, HEIGHT, "paper", radius=8)]
    parts.append(text(12, 24, "Facts right, against the tokens of the prompt", "strong"))
    parts += _key()
    for tick in up.ticks(6):
        parts.append(line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "rule"))
        parts.append(text(LEFT - 6, up(tick) + 4, f"{tick:.0%}", "soft", "end"))
    for tick in across.ticks(8):
        parts.append(text(across(tick), BOTTOM + 18, f"{tick:.0f}", "soft", "middle"))
    y = up(whole["facts"])
    parts.append(line(LEFT, y, WIDTH - RIGHT, y, "mark"))
    for group, colour in COLOURS.items():
        points = sorted(
            (across(each["prompt_tokens"]), up(each["facts"]), name.removeprefix(group).strip())
            for name, each in ways.items()
            if kind(name) == group
        )
        curve = " ".join(f"{x:.1f},{y:.1f}" for x, y, words in points if words != "auto")
        parts.append(
            f'<polyline points="{curve}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        for x, y, words in points:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--{colour})"/>')
            right, down, anchor = LABELS.get(group, (8, -4, "start"))
            parts.append(text(x + right, y + down, words, "soft", anchor))
    parts.append(
        text(12, HEIGHT - 12, "lab pair; dashed: the whole clip, the exact answer", "soft")
    )
    title = "Facts right: " + ", ".join(
        f"{label(name)} {each['facts']:.1%}" for name, each in ways.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' role="img"><title>{title}</title><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _key() -> list[str]:
    parts, x = [], 12.0
    for group, colour in COLOURS.items():
        parts.append(rect(x, 42, 12, 12, colour))
        parts.append(text(x + 18, 53, WORDS[group]))
        x += 44 + 7.0 * len(WORDS[group])
    return parts


TABLES: dict[str, Callable[[], str]] = {"approximate-facts": lambda: facts(result(FACTS))}
