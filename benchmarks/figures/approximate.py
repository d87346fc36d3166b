"""Tables and picture of docs/approximate.md: what answering sooner costs in facts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures.picture import STYLE, line, rect, text
from benchmarks.figures.results import markdown, result

from headstart.bench.svg import Scale

FACTS, KV, SPEED = "eval_approximate_facts", "eval_approximate_kv", "eval_approximate_speed"
PICTURE = Path("docs/pictures/approximate.svg")
WHOLE = "whole clip"
BARE = "bare vLLM, whole clip"
KV_BRIDGE = "KV bridge"
PREVIEWED = ", previewed"
WORDS = {
    WHOLE: "the whole clip, exact",
    "events": "patches that changed",
    "even": "patches drawn evenly",
    "frames": "frames by what happened",
    "short clip": "a clip of fewer frames",
    "oldest whole": "changes since the oldest frame",
    KV_BRIDGE: "nothing: keys and values guessed from events",
}
COLOURS = {"events": "draft", "even": "pass", "frames": "prefill", "short clip": "soft"}
LABELS = {
    "events": (-8, 4, "end"),
    "even": (8, 12, "start"),
    "frames": (0, 18, "middle"),
    "short clip": (0, -9, "middle"),
}
"""Where the words of a point stand beside it."""
WIDTH, HEIGHT = 820, 560
LEFT, RIGHT, TOP, BOTTOM = 60, 30, 82, 500


def in_order(ways: Any) -> dict[str, Any]:
    """Ways by kind; within a kind as they were measured."""
    kinds = list(WORDS)
    return dict(sorted(ways.items(), key=lambda way: kinds.index(kind(way[0]))))


def kind(name: str) -> str:
    """What a way belongs to: its name without the budget."""
    return next(each for each in WORDS if name.startswith(each))


def label(name: str) -> str:
    """A way in words."""
    return f"{WORDS[kind(name)]}{name.removeprefix(kind(name)).replace(' ', ', ', 1)}"


def facts(run: Any) -> str:
    """Facts right, and how much the answers differ."""
    ways = in_order(run["ways"])
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


def speed(run: Any, known: Any) -> str:
    """When the words come, with what the same way costs in facts."""
    ways = run["ways"]
    rows = [
        (
            "bare vLLM, the whole clip" if name == BARE else label(name),
            f"{each['first_word_ms']:.0f} ms",
            f"{each['last_word_ms']:.0f} ms",
            "" if name == BARE else times(each["over_bare"]),
            "" if name in (BARE, WHOLE) else times(each["over_whole"]),
            f"{known[WHOLE if name == BARE else name]['facts']:.1%}",
        )
        for name, each in {
            BARE: ways[BARE],
            **in_order(exact_or_not(ways, previewed=False)),
        }.items()
    ]
    headings = (
        f"lab pair, {run['num_clips']} clips: shown",
        "first word",
        "last word",
        "times as fast as bare vLLM",
        "as headstart with the whole clip",
        "facts right",
    )
    return markdown(headings, rows)


def previews(run: Any) -> str:
    """When an approximate preview of the exact answer comes."""
    ways = run["ways"]
    rows = [
        (
            label(name.removesuffix(PREVIEWED)),
            f"{each['preview_ms']:.0f} ms",
            f"{each['first_word_ms']:.0f} ms",
            f"{each['preview_share']:.2f}",
            f"{each['previews_right']:.0%}",
            f"{each['last_word_ms']:.0f} ms",
            times(each["over_whole"]),
            f"{each['same_answer']:.0%}",
        )
        for name, each in in_order(exact_or_not(ways, previewed=True)).items()
    ]
    headings = (
        f"lab pair, {run['num_clips']} clips: previewed by",
        "first previewed word",
        "first confirmed word",
        "share of that wait",
        "previews right",
        "last word",
        "times as fast as without the preview",
        "same answer",
    )
    return markdown(headings, rows)


def exact_or_not(ways: Any, *, previewed: bool) -> dict[str, Any]:
    """The ways whose answer is exact after a preview, or the others."""
    return {
        name: each
        for name, each in ways.items()
        if name != BARE and name.endswith(PREVIEWED) == previewed
    }


def times(ratio: Any) -> str:
    """A ratio with its interval."""
    return f"{ratio['value']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def known_facts() -> dict[str, Any]:
    """The facts of all ways, also of the KV bridge, which was measured in a run of its own."""
    return {**result(KV)["ways"], **result(FACTS)["ways"]}


def picture() -> str:
    """Facts right against the wait for the last word."""
    known, run = known_facts(), result(SPEED)
    timed = exact_or_not(run["ways"], previewed=False)
    ways = {name: (each["last_word_ms"], known[name]["facts"]) for name, each in timed.items()}
    shares = [share for _, share in ways.values()]
    bare_ms = run["ways"][BARE]["last_word_ms"]
    low, high = min(shares), max(shares)
    margin = 0.08 * (high - low)
    longest_ms = max(wait_ms for wait_ms, _ in ways.values())
    across = Scale(0.0, 1.05 * longest_ms, LEFT, WIDTH - RIGHT)
    up = Scale(low - margin, high + margin, BOTTOM, TOP)
    parts = [rect(0, 0, WIDTH, HEIGHT, "paper", radius=8)]
    parts.append(text(12, 24, "Facts right, against the wait for the last word", "strong"))
    parts += _key()
    for tick in up.ticks(6):
        parts.append(line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "rule"))
        parts.append(text(LEFT - 6, up(tick) + 4, f"{tick:.0%}", "soft", "end"))
    for tick in across.ticks(8):
        parts.append(text(across(tick), BOTTOM + 18, f"{tick:.0f} ms", "soft", "middle"))
    exact_y = up(ways[WHOLE][1])
    parts.append(line(LEFT, exact_y, WIDTH - RIGHT, exact_y, "mark"))
    for group, colour in COLOURS.items():
        shown = sorted(
            (name for name in ways if kind(name) == group),
            key=lambda name: known[name]["prompt_tokens"],
        )
        points = [
            (across(ways[name][0]), up(ways[name][1]), name.removeprefix(group).strip())
            for name in shown
        ]
        curve = " ".join(f"{x:.1f},{y:.1f}" for x, y, words in points if words != "auto")
        parts.append(
            f'<polyline points="{curve}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        for x, y, words in points:
            parts += _point(x, y, words, colour, *LABELS[group])
    parts += _point(across(ways[WHOLE][0]), exact_y, "whole clip", "ink", 0, -10, "middle")
    if KV_BRIDGE in ways:
        wait_ms, share = ways[KV_BRIDGE]
        parts += _point(across(wait_ms), up(share), KV_BRIDGE, "ink", 8, 4, "start")
    said = f"lab pair; dashed: the exact answer's facts, which bare vLLM has after {bare_ms:.0f} ms"
    parts.append(text(12, HEIGHT - 12, said, "soft"))
    title = "Facts right and wait for the last word: " + ", ".join(
        f"{label(name)} {share:.1%} {wait_ms:.0f} ms" for name, (wait_ms, share) in ways.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' role="img"><title>{title}</title><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _point(
    x: float, y: float, words: str, colour: str, right: float, down: float, anchor: str
) -> list[str]:
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--{colour})"/>',
        text(x + right, y + down, words, "soft", anchor),
    ]


def _key() -> list[str]:
    parts, x = [], 12.0
    for group, colour in COLOURS.items():
        parts.append(rect(x, 42, 12, 12, colour))
        parts.append(text(x + 18, 53, WORDS[group]))
        x += 44 + 7.0 * len(WORDS[group])
    return parts


TABLES: dict[str, Callable[[], str]] = {
    "approximate-facts": lambda: facts({**result(FACTS), "ways": known_facts()}),
    "approximate-speed": lambda: speed(result(SPEED), known_facts()),
    "approximate-previews": lambda: previews(result(SPEED)),
}
