"""The parts that charts are drawn from, as SVG text, and how they look.

Colours are CSS variables, which `STYLE` defines for light and dark pages. `standalone` puts the
style into a chart that is a file of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from headstart.answers.timeline import STAGE_COLOURS

WIDTH = 380
RIGHT = 12
ROW = 30
PALETTE = tuple(f"c{number}" for number in range(10))

STYLE = """
:root{--paper:#fff;--ink:#1c1c1e;--grey:#6b6b72;--rule:#e3e3e8;
{stages}
--c0:#5f6670;--c1:#2f8f5b;--c2:#a8456e;--c3:#1f8f9e;--c4:#9a8a1e;--c5:#b5382e;--c6:#7a5cc4;--c7:#8b6b4a;--c8:#3a6ea5;--c9:#c8711c}
@media(prefers-color-scheme:dark){:root{--paper:#161618;--ink:#ececf0;--grey:#9a9aa4;--rule:#34343a;
--c0:#a4acb8;--c1:#66c792;--c2:#e085ac;--c3:#5cc7d6;--c4:#d6c452;--c5:#f07a70;--c6:#b29bf0;--c7:#c9a982;--c8:#79aee6;--c9:#f0a050}}
svg.chart{width:100%;height:auto;display:block;font:11px system-ui,sans-serif}
svg.chart text{fill:var(--ink)}svg.chart .soft{fill:var(--grey)}
svg.chart .rule{stroke:var(--rule);stroke-width:1}svg.chart .axis{stroke:var(--grey);stroke-width:1}
svg.chart .even{stroke:var(--ink);stroke-width:1;stroke-dasharray:4 3}
""".replace("{stages}", "".join(f"--{stage}:{colour};" for stage, colour in STAGE_COLOURS.items()))


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


def standalone(chart: str) -> str:
    styled = f"<style>{STYLE}svg.chart{{background:var(--paper)}}</style>"
    opened = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, rest = opened.partition(">")
    return f"{head}>{styled}{rest}\n"


def svg(height: int, parts: Sequence[str], title: str) -> str:
    """A chart of the usual width; ``title`` is for those who do not see it."""
    body = "".join(parts)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title, quote=True)}">{body}</svg>'
    )


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    """Words at a place; ``anchor`` says which end of them is there."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def dot(x: float, y: float, colour: str, radius: float, opacity: float = 1.0) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="var(--{colour})"'
        f' fill-opacity="{opacity}"/>'
    )


def tick_label(value: float) -> str:
    """A value as an axis shows it."""
    return f"{value:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def _round_step(rough: float) -> float:
    if rough <= 0:
        return 1.0
    size = 10.0 ** floor(log10(rough))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
