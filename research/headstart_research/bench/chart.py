"""Charts as SVG text, drawn for a page 390 pixels wide and scaled to any other."""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import median

from headstart_research.bench.svg import (
    PALETTE,
    RIGHT,
    ROW,
    WIDTH,
    Scale,
    dot,
    line,
    svg,
    text,
    tick_label,
)

LEFT = 44


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
    parts = [*_grid(across, up, top, bottom), text(5, 11, y_label, "soft")]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, height - 4, x_label, "soft", "middle"))
    if even is not None:
        parts.append(line(LEFT, up(even), WIDTH - RIGHT, up(even), "even"))
    for number, (name, curve) in enumerate(series.items()):
        colour = (colours or {}).get(name, PALETTE[number % len(PALETTE)])
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in sorted(curve))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        if len(curve) <= 12:
            parts += [dot(across(x), up(y), colour, 2.5) for x, y in curve]
    parts += _key(series, colours, 27)
    return svg(height, parts, f"{y_label} over {x_label}")


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
        parts.append(line(across(tick), 8, across(tick), bottom, "rule"))
        parts.append(text(across(tick), bottom + 14, tick_label(tick), "soft", "middle"))
    for number, (name, samples) in enumerate(groups.items()):
        colour = (colours or {}).get(name, PALETTE[number % len(PALETTE)])
        y = 14 + ROW * number + ROW / 2
        parts.append(text(left - 6, y + 4, name, "", "end"))
        for place, value in enumerate(samples):
            spread = ((place * 7919) % 11 - 5) * 1.2  # jitter that is the same every time
            parts.append(dot(across(value), y + spread, colour, 2.2, 0.45))
        if samples:
            x = across(median(samples))
            parts.append(
                f'<line x1="{x:.1f}" y1="{y - 10:.1f}" x2="{x:.1f}" y2="{y + 10:.1f}"'
                f' stroke="var(--{colour})" stroke-width="3"/>'
            )
    parts.append(text((left + WIDTH - RIGHT) / 2, height - 4, label, "soft", "middle"))
    return svg(height, parts, label)


def spans(
    rows: Mapping[str, Sequence[tuple[str, float, float]]], label: str, kinds: Sequence[str]
) -> str:
    """Draw rows of spans (kind, start, stop): a Gantt chart, or stacked bars.

    A kind has the colour of its name: each stage has one.
    """
    ends = [stop for row in rows.values() for _, _, stop in row]
    if not ends:
        return empty("nothing was measured")
    left, key_rows = 92, _num_key_rows(kinds)
    top = 6 + 15 * key_rows
    bottom = top + ROW * len(rows)
    height = bottom + 34
    across = Scale(0.0, max(ends) or 1.0, left, WIDTH - RIGHT)
    parts = _key(kinds, {kind: kind for kind in kinds}, 12)
    for tick in across.ticks():
        parts.append(line(across(tick), top, across(tick), bottom, "rule"))
        parts.append(text(across(tick), bottom + 14, tick_label(tick), "soft", "middle"))
    for number, (name, row) in enumerate(rows.items()):
        y = top + ROW * number
        parts.append(text(left - 6, y + ROW / 2 + 4, name, "", "end"))
        for kind, start, stop in row:
            width = max(0.8, across(stop) - across(start))
            parts.append(
                f'<rect x="{across(start):.1f}" y="{y + 6:.1f}" width="{width:.1f}"'
                f' height="{ROW - 12}" fill="var(--{kind})"><title>{escape(kind)}'
                f" {stop - start:.1f}</title></rect>"
            )
    parts.append(text((left + WIDTH - RIGHT) / 2, height - 4, label, "soft", "middle"))
    return svg(height, parts, label)


def empty(reason: str) -> str:
    return f'<p class="none">{escape(reason)}</p>'


def _grid(across: Scale, up: Scale, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in up.ticks():
        parts.append(line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "rule"))
        parts.append(text(LEFT - 5, up(tick) + 4, tick_label(tick), "soft", "end"))
    for tick in across.ticks():
        parts.append(line(across(tick), bottom, across(tick), bottom + 3, "axis"))
        parts.append(text(across(tick), bottom + 14, tick_label(tick), "soft", "middle"))
    parts.append(line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis"))
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
        parts.append(dot(9 + x, y + 15 * row - 4, colour, 4))
        parts.append(text(17 + x, y + 15 * row, name))
    return parts
