"""The picture of docs/figures-live.md: percentiles of the wait against the rate of questions."""

from pathlib import Path

from benchmarks.figures.load import OPEN, OPEN_RUN, PERCENTS, kept, loads_of, methods_in
from benchmarks.figures.picture import line, rect, svg, text
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.svg import Scale

PICTURE = Path("docs/pictures/load.svg")
WIDTH, HEIGHT = 820, 330
TOP, BOTTOM = 92, 262
PANEL, GAP, LEFT = 216, 46, 44
COLOURS = {BARE: "soft", "memory": "draft", "cascade": "prefill", "none": "pass"}
OTHER = "read"


def load_picture() -> str:
    """The picture as SVG, of the kept run."""
    return drawn(kept(OPEN_RUN), OPEN)


def drawn(result: BenchResult, workload: str) -> str:
    """A panel for each percentile; rings are bursts, the dashed line is the limit of goodput."""
    methods = methods_in(result, (load.name for load in loads_of(result, workload)))
    colours = {method: COLOURS.get(method, OTHER) for method in methods}
    parts = [text(12, 24, "The wait for an answer, against the questions a second", "strong")]
    parts += _key(colours)
    for number, percent in enumerate(PERCENTS):
        parts += _panel(result, workload, percent, colours, LEFT + number * (PANEL + GAP))
    parts.append(
        text(
            12,
            HEIGHT - 12,
            "rings: half of the cameras ask at the same moment; dashed: the limit of goodput,"
            f" {result.limit_s(workload):.1f} s; vertical: bare vLLM's capacity",
            "soft",
        )
    )
    highest = result.random_loads(workload, BARE)[-1]
    words = ", ".join(
        f"{method} {result.percentile_s(highest.name, method, 95):.1f} s" for method in methods
    )
    title = f"95% of the answers at {highest.rate:.2f} questions a second come within: {words}."
    return svg(WIDTH, HEIGHT, title, parts)


def _panel(
    result: BenchResult, workload: str, percent: int, colours: dict[str, str], left: float
) -> list[str]:
    loads = loads_of(result, workload)
    capacity, slowest = loads[0].capacity, min(load.rate for load in loads)
    waits = {
        (load.name, method): result.percentile_s(load.name, method, percent)
        for load in loads
        for method in colours
    }
    across = Scale(slowest - 0.05 * capacity, 1.05 * capacity, left, left + PANEL)
    up = Scale(0.0, max(*waits.values(), result.limit_s(workload)) * 1.05, BOTTOM, TOP)
    parts = [text(left, TOP - 12, f"{percent}% of the answers within, s", "soft")]
    for tick in up.ticks(4):
        parts.append(line(left, up(tick), left + PANEL, up(tick), "rule"))
        parts.append(text(left - 6, up(tick) + 4, f"{tick:g}", "soft", "end"))
    for load in loads:
        if load.burst == 1:
            x = across(load.rate)
            parts.append(text(x, BOTTOM + 17, f"{load.rate:.2g}", "soft", "middle"))
    parts.append(text(left + PANEL / 2, BOTTOM + 34, "questions a second", "soft", "middle"))
    parts.append(line(across(capacity), TOP, across(capacity), BOTTOM, "rule"))
    if percent == 95:
        y = up(result.limit_s(workload))
        parts.append(line(left, y, left + PANEL, y, "mark"))
    for method, colour in colours.items():
        curve = [
            (across(load.rate), up(waits[load.name, method]))
            for load in result.random_loads(workload, method)
        ]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{colour})"/>' for x, y in curve
        ]
        parts += [
            f'<circle cx="{across(load.rate):.1f}" cy="{up(waits[load.name, method]):.1f}" r="4.5"'
            f' fill="none" stroke="var(--{colour})" stroke-width="2"/>'
            for load in loads
            if load.burst > 1
        ]
    return parts


def _key(colours: dict[str, str]) -> list[str]:
    parts, x = [], 12.0
    for method, colour in colours.items():
        parts.append(rect(x, 42, 12, 12, colour))
        parts.append(text(x + 18, 53, method))
        x += 40 + 7.2 * len(method)
    return parts
