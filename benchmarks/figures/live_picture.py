"""The first picture of README: one window of bare vLLM and of headstart, as sampled."""

from pathlib import Path

from benchmarks.figures.picture import Run, line, rect, svg, text, typical_pair
from headstart_research.bench.result import BARE

PICTURE = Path("docs/pictures/live.svg")
RUN, METHOD = "bench_lab-pair_live", "live, own stream"
WIDTH, HEIGHT = 820, 300
LEFT, RIGHT = 100, 76
BAR, WORDS = 34, 22
FRAMES, LANES, AXIS = 62, {BARE: 104, "headstart": 176}, 244
NUM_FRAMES, FRAME_S = 8, 0.125
CAPTION = (
    "lab pair on one CPU core, float32; passes of one answer are drawn equally long, and feeds as"
    " long as a frame's share of the prefill"
)


def live() -> str:
    """The picture as SVG."""
    bare, ours = typical_pair(RUN, METHOD)
    before_s = (NUM_FRAMES - 1) * FRAME_S
    scale = (WIDTH - LEFT - RIGHT) / (before_s + bare.end_s)
    last = LEFT + before_s * scale
    parts = _axis(bare.end_s, last, scale)
    parts += _frames(last, scale)
    feed_s = (bare.first_token_s - bare.read_s) / NUM_FRAMES
    for number in range(1, NUM_FRAMES):
        x = last - number * FRAME_S * scale
        parts.append(rect(x, LANES["headstart"], feed_s * scale, BAR, "prefill"))
    for name, run in ((BARE, bare), ("headstart", ours)):
        parts += _lane(name, run, last, scale)
    parts += [
        text(12, 24, "The same question about the same second of a camera", "strong"),
        *_labels(bare, ours, last, scale),
        text(
            LEFT,
            LANES["headstart"] + BAR + 17,
            "each frame is prefilled when it lands",
        ),
        text(
            last + ours.end_s * scale + 74,
            LANES["headstart"] + WORDS,
            f"the same {sum(ours.tokens)} tokens, {bare.end_s / ours.end_s:.1f} times sooner",
        ),
    ]
    title = (
        "The same question about the same second of a camera. From the last frame to the last"
        f" word: bare vLLM {bare.end_s * 1e3:.0f} ms and {len(bare.tokens)} passes, headstart"
        f" {ours.end_s * 1e3:.0f} ms and {len(ours.tokens)} passes for the same tokens."
    )
    return svg(WIDTH, HEIGHT, title, parts)


def _labels(bare: Run, ours: Run, last: float, scale: float) -> list[str]:
    """What the colours are, in words."""
    first, later = ours.first_drafted, len(ours.tokens) - 1
    return [
        text(last + bare.read_s * scale + 8, LANES[BARE] + WORDS, "prefill", "light"),
        text(
            last + bare.first_token_s * scale,
            LANES[BARE] - 8,
            f"{len(bare.tokens) - 1} passes, a token each",
        ),
        text(
            last + 4,
            LANES["headstart"] - 8,
            f"one pass: last frame, question, {first} drafted tokens; then {later} more",
        ),
    ]


def _lane(name: str, run: Run, start: float, scale: float) -> list[str]:
    y, later = LANES[name], len(run.tokens) - 1
    pass_s = (run.end_s - run.first_token_s) / later if later else 0.0
    return [
        text(LEFT - 12, y + WORDS, name, "strong", "end"),
        rect(start, y, run.read_s * scale, BAR, "read"),
        rect(
            start + run.read_s * scale, y, (run.first_token_s - run.read_s) * scale, BAR, "prefill"
        ),
        *(
            rect(
                start + (run.first_token_s + number * pass_s) * scale,
                y,
                max(1.0, pass_s * scale - 1.5),
                BAR,
                "pass",
            )
            for number in range(later)
        ),
        text(start + run.end_s * scale + 8, y + WORDS, f"{run.end_s * 1e3:.0f} ms", "strong"),
    ]


def _frames(last: float, scale: float) -> list[str]:
    parts = [text(LEFT - 12, FRAMES + 15, "frames", "strong", "end")]
    for number in range(NUM_FRAMES):
        x = last - number * FRAME_S * scale
        parts.append(rect(x - 9, FRAMES, 18, 20, "draft"))
    return [*parts, line(last, FRAMES - 8, last, AXIS, "mark")]


def _axis(end_s: float, last: float, scale: float) -> list[str]:
    parts = []
    for tick_ms in range(-800, int(end_s * 1e3) + 1, 400):
        x = last + tick_ms / 1e3 * scale
        parts.append(line(x, FRAMES - 8, x, AXIS, "rule"))
        words = f"{tick_ms} ms" if tick_ms else "last frame"
        parts.append(text(x, AXIS + 16, words, "soft", "middle"))
    return [*parts, text(12, HEIGHT - 12, CAPTION, "soft")]
