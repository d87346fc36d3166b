"""The picture of an evaluation: tokens a pass of every drafter, with intervals, by workload."""

from collections.abc import Mapping
from typing import Any

from headstart_research.bench.svg import (
    PALETTE,
    RIGHT,
    WIDTH,
    Scale,
    dot,
    line,
    standalone,
    svg,
    text,
    tick_label,
)
from headstart_research.evaluation.evaluation import Figures

LABEL = "tokens a pass of the target"
ROW = 22
TITLE = 20
LETTER = 7.2  # of a drafter's name: its width in a wide font


def drawn(workloads: Mapping[str, Mapping[str, Any]], summary: Figures) -> str:
    """SVG, a file of its own, of these two parts of a result.

    A dot is the measured value, the bar its interval over answers, the line that over streams.
    """
    rows = [figures for drafters in summary.values() for figures in drafters.values()]
    names = list(dict.fromkeys(name for drafters in summary.values() for name in drafters))
    left = 14 + LETTER * max(map(len, names))
    across = Scale(0.0, 1.04 * max(map(_highest, rows)), left, WIDTH - RIGHT)
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)}
    parts, top = [], 4
    for work, drafters in summary.items():
        bottom = top + TITLE + ROW * len(drafters)
        parts.append(text(6, top + 13, str(workloads[work]["words"])))
        for tick in across.ticks():
            parts.append(line(across(tick), top + TITLE, across(tick), bottom, "rule"))
        for place, (name, figures) in enumerate(drafters.items()):
            y = top + TITLE + ROW * place + ROW / 2
            parts.append(text(left - 8, y + 4, name, "", "end"))
            parts += _mark(figures, across, y, colours[name])
        top = bottom + 8
    for tick in across.ticks():
        parts.append(text(across(tick), top + 6, tick_label(tick), "soft", "middle"))
    middle = (left + WIDTH - RIGHT) / 2
    parts.append(text(middle, top + 22, LABEL, "soft", "middle"))
    parts.append(
        text(middle, top + 36, "bar: 95% over answers; line: over streams", "soft", "middle")
    )
    return standalone(svg(top + 44, parts, LABEL))


def _mark(figures: Mapping[str, Any], across: Scale, y: float, colour: str) -> list[str]:
    drawn = []
    for over, thickness, opacity in (("streams", 1.5, 1.0), ("answers", 7, 0.35)):
        low, high = figures[f"{over}_low"], figures[f"{over}_high"]
        if low is not None:
            drawn.append(
                f'<line x1="{across(low):.1f}" y1="{y:.1f}" x2="{across(high):.1f}" y2="{y:.1f}"'
                f' stroke="var(--{colour})" stroke-width="{thickness}"'
                f' stroke-opacity="{opacity}"/>'
            )
    return [*drawn, dot(across(figures["tokens_per_pass"]), y, colour, 3.5)]


def _highest(figures: Mapping[str, Any]) -> float:
    names = ("tokens_per_pass", "answers_high", "streams_high")
    return max(float(figures[name]) for name in names if figures[name] is not None)
