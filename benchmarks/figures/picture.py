"""README's picture: one answer of bare vLLM and of headstart, drawn from a committed sample.

The sample is the pair of answers whose times are nearest to both engines' medians, of the run over
300 seconds of a drive. A pass after the first is drawn as an equal part of the decoding: the bench
notes how many tokens each pass accepted, and no time of its own.
"""

from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures.results import result
from headstart.answers.timeline import STAGE_COLOURS, Stage
from headstart_research.bench.result import BARE

PICTURE = Path("docs/pictures/head-start.svg")
RUN, METHOD = "bench_lab-pair_300-clips", "memory"
WIDTH, HEIGHT = 820, 274
LEFT, RIGHT = 100, 82
BAR, STRIP, WORDS = 34, 20, 22
LANES = {"bare vLLM": 58, "headstart": 154}
AXIS = 222
CAPTION = "lab pair on one CPU core, float32; passes of one answer are drawn equally long"

# An image on GitHub follows the system's colour scheme, the page around it the reader's own
# choice. So the picture brings its own background for either.
STYLE = """
svg{--paper:#fff;--ink:#1f2328;--soft:#656d76;--rule:#d8dee4;--read:#b6bec8;--prefill:{prefill};--pass:{decode};--draft:#24774d}
@media(prefers-color-scheme:dark){svg{--paper:#151b23;--ink:#f0f6fc;--soft:#9198a1;--rule:#3d444d;--read:#656c76;--prefill:{prefill};--pass:{decode};--draft:#24774d}}
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}
.soft{fill:var(--soft);font-size:12px}.strong{font-weight:600}.light{fill:#fff}
.rule{stroke:var(--rule)}.mark{stroke:var(--ink);stroke-dasharray:3 3}
"""
STYLE = STYLE.replace("{prefill}", STAGE_COLOURS[Stage.PREFILL])
STYLE = STYLE.replace("{decode}", STAGE_COLOURS[Stage.DECODE])


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: when its parts ended, and how many tokens each pass brought."""

    read_s: float
    first_token_s: float
    end_s: float
    tokens: tuple[int, ...]
    first_drafted: int

    @classmethod
    def parse(cls, sample: dict[str, Any]) -> "Run":
        """From a sample of the bench."""
        prefill_s = next(start for _, stage, start, _ in sample["spans"] if stage == "prefill")
        tokens = [accepted + 1 for accepted in sample["accepted"]]
        tokens[-1] = sample["num_tokens"] - sum(tokens[:-1])
        return cls(
            read_s=prefill_s,
            first_token_s=sample["first_token_s"],
            end_s=sample["end_to_end_s"],
            tokens=tuple(tokens),
            first_drafted=sample["first_drafted"],
        )


def typical_pair(run: str, method: str) -> tuple[Run, Run]:
    """Bare vLLM's answer and ours to the question that took both about as long as usual."""
    samples = [s for s in result(run)["samples"] if s["beside"] == method and s["settled"]]

    def of(method: str) -> dict[tuple[int, int], dict[str, Any]]:
        return {(s["round"], s["index"]): s for s in samples if s["method"] == method}

    bare, ours = of(BARE), of(method)
    usual = [median(s["end_to_end_s"] for s in side.values()) for side in (bare, ours)]

    def distance(key: tuple[int, int]) -> float:
        times = (bare[key]["end_to_end_s"], ours[key]["end_to_end_s"])
        return sum(abs(log(time / of_all)) for time, of_all in zip(times, usual, strict=True))

    nearest = min(bare.keys() & ours.keys(), key=distance)
    assert bare[nearest]["words"] == ours[nearest]["words"], "the two answers differ"
    return Run.parse(bare[nearest]), Run.parse(ours[nearest])


def head_start() -> str:
    """The picture as SVG."""
    bare, ours = typical_pair(RUN, METHOD)
    scale = (WIDTH - LEFT - RIGHT) / bare.end_s
    parts = axis(bare.end_s, scale)
    for (name, y), run in zip(LANES.items(), (bare, ours), strict=True):
        parts += lane(name, y, run, scale)
    parts += labels(bare, ours, scale)
    title = (
        f"The same question about the same second of video: bare vLLM answers in"
        f" {bare.end_s * 1e3:.0f} ms and {len(bare.tokens)} passes, headstart with the same"
        f" {sum(ours.tokens)} tokens in {ours.end_s * 1e3:.0f} ms and {len(ours.tokens)} passes."
    )
    return svg(WIDTH, HEIGHT, title, parts)


def lane(name: str, y: int, run: Run, scale: float) -> list[str]:
    """A run's parts on one line: reading the clip, prefill, and each pass after it."""
    later = len(run.tokens) - 1
    pass_s = (run.end_s - run.first_token_s) / later if later else 0.0
    starts = [run.first_token_s + number * pass_s for number in range(later)]
    return [
        text(LEFT - 12, y + WORDS, name, "strong", "end"),
        rect(LEFT, y, run.read_s * scale, BAR, "read"),
        rect(
            LEFT + run.read_s * scale, y, (run.first_token_s - run.read_s) * scale, BAR, "prefill"
        ),
        *(
            rect(LEFT + start * scale, y, max(1.0, pass_s * scale - 1.5), BAR, "pass")
            for start in starts
        ),
        text(LEFT + run.end_s * scale + 8, y + WORDS, f"{run.end_s * 1e3:.0f} ms", "strong"),
    ]


def labels(bare: Run, ours: Run, scale: float) -> list[str]:
    """Words beside the lanes, and the draft above the prefill that checks it."""
    top, below = LANES["bare vLLM"], LANES["headstart"]
    prefill, decode = LEFT + ours.read_s * scale, LEFT + ours.first_token_s * scale
    bare_end, middle = LEFT + bare.end_s * scale, below + BAR / 2
    gap = LEFT + ours.end_s * scale + 68
    sooner = f"{(bare.end_s - ours.end_s) * 1e3:.0f} ms sooner, the same {sum(ours.tokens)} tokens"
    return [
        text(12, 24, "The same question about the same second of video, asked of both", "strong"),
        text(prefill + 8, top + WORDS, "prefill: 1 token", "light"),
        text(
            LEFT + bare.first_token_s * scale,
            top - 8,
            f"decode: {len(bare.tokens) - 1} passes of 1 token",
        ),
        rect(prefill, below - STRIP - 2, decode - prefill, STRIP, "draft"),
        text(prefill + 8, below - 7, f"draft: {ours.first_drafted} tokens", "light"),
        text(decode + 8, below - 7, "remembered from the camera's earlier answers"),
        text(prefill + 8, below + WORDS, f"prefill: {ours.tokens[0]} tokens", "light"),
        text(
            decode,
            below + BAR + 17,
            f"decode: {len(ours.tokens) - 1} passes, {sum(ours.tokens[1:])} tokens",
        ),
        line(gap, middle, bare_end, middle, "mark"),
        line(bare_end, top + BAR, bare_end, below + BAR, "mark"),
        text((gap + bare_end) / 2, middle - 8, sooner, "strong", "middle"),
    ]


def axis(end_s: float, scale: float) -> list[str]:
    """Milliseconds since the question."""
    parts = []
    for tick_ms in range(0, int(end_s * 1e3) + 1, 200):
        x = LEFT + tick_ms / 1e3 * scale
        parts.append(line(x, LANES["bare vLLM"] - 4, x, AXIS, "rule"))
        words = f"{tick_ms} ms" if tick_ms else "asked"
        parts.append(text(x, AXIS + 16, words, "soft", "middle"))
    return [*parts, text(12, HEIGHT - 12, CAPTION, "soft")]


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """A picture of these parts on a sheet of its own colour."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' role="img"><title>{title}</title><style>{STYLE}</style>\n'
        + "\n".join([rect(0, 0, width, height, "paper", radius=8), *parts])
        + "\n</svg>\n"
    )


def rect(x: float, y: float, width: float, height: float, fill: str, radius: int = 2) -> str:
    """A filled box."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"'
        f' fill="var(--{fill})"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{words}</text>'
