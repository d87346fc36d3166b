"""Charts as SVG text, drawn for a page 390 pixels wide and scaled to any other.

Colours are CSS variables, which `STYLE` defines for light and dark pages. `standalone` puts the
style into a chart that is a file of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from statistics import median

WIDTH = 380
LEFT, RIGHT = 44, 12
ROW = 30
PALETTE = tuple(f"c{number}" for number in range(10))
KINDS = ("k0", "k1", "k2", "k3", "k4")  # colours of spans, none of which a curve has

STYLE = """
:root{--paper:#fff;--ink:#1c1c1e;--grey:#6b6b72;--rule:#e3e3e8;
--c0:#5f6670;--c1:#3a6ea5;--c2:#c8711c;--c3:#2f8f5b;--c4:#a8456e;--c5:#7a5cc4;--c6:#9a8a1e;--c7:#1f8f9e;--c8:#b5382e;--c9:#8b6b4a;
--k0:#b9c0ca;--k1:#8fa3bd;--k2:#d9a441;--k3:#5b84b1;--k4:#23395b}
@media(prefers-color-scheme:dark){:root{--paper:#161618;--ink:#ececf0;--grey:#9a9aa4;--rule:#34343a;
--c0:#a4acb8;--c1:#79aee6;--c2:#f0a050;--c3:#66c792;--c4:#e085ac;--c5:#b29bf0;--c6:#d6c452;--c7:#5cc7d6;--c8:#f07a70;--c9:#c9a982;
--k0:#5a616b;--k1:#7d93ae;--k2:#d9a441;--k3:#5b8fc9;--k4:#bcd2ee}}
svg.chart{width:100%;height:auto;display:block;font:11px system-ui,sans-serif}
svg.chart text{fill:var(--ink)}svg.chart .soft{fill:var(--grey)}
svg.chart .rule{stroke:var(--rule);stroke-width:1}svg.chart .axis{stroke:var(--grey);stroke-width:1}
svg.chart .even{stroke:var(--ink);stroke-width:1;stroke-dasharray:4 3}
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to positions on the page."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The position of a value."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.stop - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values within the scale."""
        step = _round_step((self.high - self.low) / about)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_label: str,
    y_label: str,
    *,
    even: float | None = None,
    colours: Mapping[str, str] | None = None,
    height: int = 230,
    nothing: str = "nothing was measured",
) -> str:
    """Draw curves; ``even`` is a dashed line at the value of no gain and no loss."""
    points = [point for curve in series.values() for point in curve]
    if not points:
        return empty(nothing)
    tops = [y for _, y in points] + ([even] if even is not None else [])
    xs = [x for x, _ in points]
    top, bottom = 24 + 15 * _num_key_rows(series), height - 34
    # A single x is drawn in the middle.
    low, high = (min(xs), max(xs)) if min(xs) < max(xs) else (xs[0] - 10, xs[0] + 10)
    across = Scale(low, high, LEFT, WIDTH - RIGHT)
    up = Scale(min(0.0, *tops), max(tops) * 1.05 or 1.0, bottom, top)
    parts = [*_grid(across, up, top, bottom), _text(5, 11, y_label, "soft")]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, height - 4, x_label, "soft", "middle"))
    if even is not None:
        parts.append(_line(LEFT, up(even), WIDTH - RIGHT, up(even), "even"))
    for number, (name, curve) in enumerate(series.items()):
        colour = (colours or {}).get(name, PALETTE[number % len(PALETTE)])
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in sorted(curve))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        if len(curve) <= 12:
            parts += [_dot(across(x), up(y), colour, 2.5) for x, y in curve]
    parts += _key(series, colours, 27)
    return _svg(height, parts, f"{y_label} over {x_label}")


def strips(
    groups: Mapping[str, Sequence[float]], label: str, colours: Mapping[str, str] | None = None
) -> str:
    """Draw each group as a row of dots, with a bar at the median."""
    values = [value for samples in groups.values() for value in samples]
    if not values:
        return empty("nothing was measured")
    left = 92
    height = 14 + ROW * len(groups) + 34
    across = Scale(0.0, max(values) * 1.02 or 1.0, left, WIDTH - RIGHT)
    bottom = 14 + ROW * len(groups)
    parts: list[str] = []
    for tick in across.ticks():
        parts.append(_line(across(tick), 8, across(tick), bottom, "rule"))
        parts.append(_text(across(tick), bottom + 14, _number(tick), "soft", "middle"))
    for number, (name, samples) in enumerate(groups.items()):
        colour = (colours or {}).get(name, PALETTE[number % len(PALETTE)])
        y = 14 + ROW * number + ROW / 2
        parts.append(_text(left - 6, y + 4, name, "", "end"))
        for place, value in enumerate(samples):
            spread = ((place * 7919) % 11 - 5) * 1.2  # jitter that is the same every time
            parts.append(_dot(across(value), y + spread, colour, 2.2, 0.45))
        if samples:
            x = across(median(samples))
            parts.append(
                f'<line x1="{x:.1f}" y1="{y - 10:.1f}" x2="{x:.1f}" y2="{y + 10:.1f}"'
                f' stroke="var(--{colour})" stroke-width="3"/>'
            )
    parts.append(_text((left + WIDTH - RIGHT) / 2, height - 4, label, "soft", "middle"))
    return _svg(height, parts, label)


def spans(
    rows: Mapping[str, Sequence[tuple[str, float, float]]], label: str, kinds: Sequence[str]
) -> str:
    """Draw rows of spans (kind, start, stop): a Gantt chart, or stacked bars."""
    ends = [stop for row in rows.values() for _, _, stop in row]
    if not ends:
        return empty("nothing was measured")
    left, key_rows = 92, _num_key_rows(kinds)
    top = 6 + 15 * key_rows
    bottom = top + ROW * len(rows)
    height = bottom + 34
    across = Scale(0.0, max(ends) or 1.0, left, WIDTH - RIGHT)
    parts = _key(kinds, dict(zip(kinds, KINDS, strict=False)), 12)
    for tick in across.ticks():
        parts.append(_line(across(tick), top, across(tick), bottom, "rule"))
        parts.append(_text(across(tick), bottom + 14, _number(tick), "soft", "middle"))
    for number, (name, row) in enumerate(rows.items()):
        y = top + ROW * number
        parts.append(_text(left - 6, y + ROW / 2 + 4, name, "", "end"))
        for kind, start, stop in row:
            colour = KINDS[list(kinds).index(kind) % len(KINDS)]
            width = max(0.8, across(stop) - across(start))
            parts.append(
                f'<rect x="{across(start):.1f}" y="{y + 6:.1f}" width="{width:.1f}"'
                f' height="{ROW - 12}" fill="var(--{colour})"><title>{escape(kind)}'
                f" {stop - start:.1f}</title></rect>"
            )
    parts.append(_text((left + WIDTH - RIGHT) / 2, height - 4, label, "soft", "middle"))
    return _svg(height, parts, label)


def empty(reason: str) -> str:
    """The text that stands where a chart has no data."""
    return f'<p class="none">{escape(reason)}</p>'


def standalone(chart: str) -> str:
    """The chart as a file of its own."""
    styled = f"<style>{STYLE}svg.chart{{background:var(--paper)}}</style>"
    opened = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, rest = opened.partition(">")
    return f"{head}>{styled}{rest}\n"


def _svg(height: int, parts: Sequence[str], title: str) -> str:
    body = "".join(parts)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title, quote=True)}">{body}</svg>'
    )


def _grid(across: Scale, up: Scale, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in up.ticks():
        parts.append(_line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "rule"))
        parts.append(_text(LEFT - 5, up(tick) + 4, _number(tick), "soft", "end"))
    for tick in across.ticks():
        parts.append(_line(across(tick), bottom, across(tick), bottom + 3, "axis"))
        parts.append(_text(across(tick), bottom + 14, _number(tick), "soft", "middle"))
    parts.append(_line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis"))
    return parts


def _places(names: Sequence[str]) -> list[tuple[int, int]]:
    """The x offset and the row of each entry of a key."""
    x, row, places = 0, 0, []
    for name in names:
        width = 24 + round(6.4 * len(name))
        if x and x + width > WIDTH - 10:
            x, row = 0, row + 1
        places.append((x, row))
        x += width
    return places


def _num_key_rows(names: Mapping[str, object] | Sequence[str]) -> int:
    return max((row for _, row in _places(list(names))), default=0) + 1


def _key(
    names: Mapping[str, object] | Sequence[str], colours: Mapping[str, str] | None, y: int
) -> list[str]:
    parts = []
    listed = list(names)
    for number, (name, (x, row)) in enumerate(zip(listed, _places(listed), strict=True)):
        colour = (colours or {}).get(name, PALETTE[number % len(PALETTE)])
        parts.append(_dot(9 + x, y + 15 * row - 4, colour, 4))
        parts.append(_text(17 + x, y + 15 * row, name))
    return parts


def _text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _dot(x: float, y: float, colour: str, radius: float, opacity: float = 1.0) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="var(--{colour})"'
        f' fill-opacity="{opacity}"/>'
    )


def _round_step(rough: float) -> float:
    if rough <= 0:
        return 1.0
    size = 10.0 ** floor(log10(rough))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"
