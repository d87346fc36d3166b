"""Tables of live cameras, on the lab pair: times count from a window's last frame."""

from collections.abc import Callable
from typing import Any

from benchmarks.figures.bench import PASSES, Column, Measured, ratio, table
from benchmarks.figures.results import markdown, result

RUN = "live"
METHODS = {
    "memory": "whole windows, with memory's drafts",
    "fed": "frames fed, without drafts",
    "live, own stream": "frames fed, with what the same camera said",
    "live": "frames fed, with what the site's cameras said",
}
AGES = ((1, 1), (2, 3), (4, 8), (9, 16), (17, 32))
FIRST_TOKEN: Column = ("first token", lambda s: f"{s['first_token']:.2f}")
FIRST_P95: Column = ("its p95", lambda s: f"{s['first_token_p95']:.2f}")
LAST_WORD: Column = ("last word (95%)", ratio)
LAST_P95: Column = ("its p95", lambda s: f"{s['last_word_p95']:.2f}")
FIRST_MS: Column = ("first token, ms", lambda s: f"{s['first_token_ms']:.0f}")
LAST_MS: Column = ("last word, ms", lambda s: f"{s['end_to_end_ms']:.0f}")
CACHED: Column = ("prompt fed before", lambda s: f"{s['cached_share']:.0%}")
ANSWERS: Column = ("windows", lambda s: f"{s['answers']}")


def speed() -> str:
    """How much sooner than bare vLLM, which is handed the whole window at its last frame."""
    rows = [Measured(label, RUN, "live", method) for method, label in METHODS.items()]
    columns = (
        FIRST_TOKEN,
        FIRST_P95,
        LAST_WORD,
        LAST_P95,
        FIRST_MS,
        LAST_MS,
        PASSES,
        CACHED,
        ANSWERS,
    )
    return table("", rows, columns)


def by_age() -> str:
    """Tokens a pass by how many windows of its stream an answer follows."""

    def tokens_a_pass(method: str, first: int, last: int) -> str:
        samples = [
            sample
            for sample in result(f"bench_lab-pair_{RUN}")["samples"]
            if sample["method"] == method and first <= sample["index"] + 1 <= last
        ]
        passes = sum(max(1, len(sample["accepted"])) for sample in samples)
        return f"{sum(sample['num_tokens'] for sample in samples) / passes:.2f}" if passes else ""

    headings = [f"{a}" if a == b else f"{a} to {b}" for a, b in AGES]
    rows = [
        (label, *(tokens_a_pass(method, *age) for age in AGES))
        for label, method in (
            ("only what the same camera said", "live, own stream"),
            ("what the site's cameras said", "live"),
        )
    ]
    return markdown(("answer of its stream", *headings), rows)


def cameras() -> str:
    """How many cameras each engine held, and what it did with twice as many."""
    held: dict[str, Any] = result(f"bench_lab-pair_{RUN}")["cameras"]
    rows = []
    for method, found in held.items():
        at = next((one for one in found["levels"] if one["cameras"] == found["held"]), None)
        doubled, recovery = found["doubled"], found["windows_to_recover"]
        windows = doubled["answered"] + doubled["dropped"]
        rows.append(
            (
                method,
                f"{found['held']}",
                "" if at is None else f"{at['p95_s'] * 1e3:.0f}",
                f"{doubled['cameras']}",
                f"{doubled['dropped']} of {windows}",
                f"{doubled['p95_s'] * 1e3:.0f}",
                "never" if recovery is None else f"{recovery}",
            )
        )
    return markdown(
        (
            "a question every two seconds",
            "cameras held",
            "p95, ms",
            "twice as many",
            "windows dropped",
            "p95, ms",
            "windows to recover",
        ),
        rows,
    )


TABLES: dict[str, Callable[[], str]] = {
    "live-speed": speed,
    "live-age": by_age,
    "live-cameras": cameras,
}
