"""Tables of live cameras, on the lab pair: times count from a window's last frame."""

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.figures.bench import PASSES, Column, Measured, ratio, table
from benchmarks.figures.results import markdown, result
from headstart_research.bench.percentiles import percentile
from headstart_research.bench.result import BARE

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


def summary() -> str:
    """The whole in two rows: a camera whose memory is its own, and began empty."""
    method = "live, own stream"
    samples = [
        sample
        for sample in result(f"bench_lab-pair_{RUN}")["samples"]
        if sample["settled"] and sample["beside"] == method
    ]
    ratios = Measured("", RUN, "live", method).summary

    def waits(asked: str, key: str) -> list[float]:
        return [sample[key] * 1e3 for sample in samples if sample["method"] == asked]

    rows = []
    for name, asked in (
        ("bare vLLM, given the second at its last frame", BARE),
        ("headstart", method),
    ):
        cells = []
        for key, prefix in (("first_token_s", "first_token"), ("end_to_end_s", "last_word")):
            for percent, ratio_of in ((50, ratios[prefix]), (95, ratios[f"{prefix}_p95"])):
                wait_ms = percentile(waits(asked, key), percent)
                sooner = "" if asked == BARE else f", {ratio_of:.1f} times sooner"
                cells.append(f"{wait_ms:.0f} ms{sooner}")
        rows.append((name, *cells))
    headings = ("first word: p50", "p95", "last word: p50", "p95")
    return markdown(("wait from the last frame", *headings), rows)


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


def by_round() -> str:
    """Each round by itself: the machine is shared, and its speed changes."""
    samples = [s for s in result(f"bench_lab-pair_{RUN}")["samples"] if s["settled"]]

    def middle(method: str, beside: str, number: int, field: str) -> float:
        return median(
            s[field]
            for s in samples
            if (s["method"], s["beside"], s["round"]) == (method, beside, number)
        )

    most_fed = max(s["num_cached_tokens"] for s in samples)
    rows = []
    for method, label in METHODS.items():
        for number in sorted({s["round"] for s in samples}):
            bare_s, ours_s = (
                middle(each, method, number, "end_to_end_s") for each in (BARE, method)
            )
            first_s = middle(method, method, number, "first_token_s")
            cached = [
                s["num_cached_tokens"]
                for s in samples
                if (s["method"], s["round"]) == (method, number)
            ]
            behind = sum(each < most_fed for each in cached)
            rows.append(
                (
                    label,
                    f"{number + 1}",
                    f"{bare_s * 1e3:.0f}",
                    f"{first_s * 1e3:.0f}",
                    f"{ours_s * 1e3:.0f}",
                    f"{bare_s / ours_s:.2f}",
                    f"{behind} of {len(cached)}",
                )
            )
    return markdown(
        (
            "median of a round",
            "round",
            "bare vLLM's last word, ms",
            "first token, ms",
            "last word, ms",
            "ratio",
            "windows not fed whole",
        ),
        rows,
    )


def equality() -> str:
    """Windows whose tokens are bare vLLM's, by what was wrong with the drafter."""
    cells = result("live_promise")["cells"]
    states = {
        "steady": "a steady camera, stepping windows, prose",
        "up": "a rough camera, a drafter beside",
        "killed": "the drafter killed",
        "alone": "the drafter without memory",
        "lying": "drafts that lie",
    }
    rows = []
    for state, label in states.items():
        of_state = [cell for cell in cells if cell["drafter"] == state]

        def total(name: str, of_state: list[dict[str, Any]] = of_state) -> int:
            return sum(cell[name] for cell in of_state)

        placed = [cell["placements"] for cell in of_state]
        rough = sum(n for one in placed for name, n in one.items() if name != "taken")
        rows.append(
            (
                label,
                f"{total('windows')}",
                f"{total('windows') - total('equal')}",
                f"{total('cached_tokens') / total('prompt_tokens'):.0%}",
                f"{total('drafted'):,}",
                f"{total('accepted'):,}",
                f"{rough}",
                f"{total('missing')}",
            )
        )
    headings = (
        "windows",
        "that differ",
        "of prompts fed before",
        "drafted",
        "accepted",
        "frames left out",
        "slots empty",
    )
    return markdown(("", *headings), rows)


def steady() -> str:
    """What a steady camera's questions computed after the last frame."""
    found = result("live_promise")["steady"]
    return markdown(
        (
            "questions",
            "tokens computed, median",
            "most",
            "one step's worth",
            "above it",
            "share, median",
            "most",
        ),
        [
            (
                f"{found['questions']}",
                f"{found['computed_tokens_p50']:.0f}",
                f"{found['computed_tokens_max']}",
                f"{found['step_worth_tokens']}",
                f"{sum(each > found['step_worth_tokens'] for each in found['computed_tokens'])}",
                f"{found['share_p50']:.0%}",
                f"{found['share_max']:.0%}",
            )
        ],
    )


def soak() -> str:
    """Half an hour in which cameras, readers and sessions fail, and what is left after it."""
    found = result("live_soak")
    rtsp, slow, mib = found["rtsp"], found["slow_reader"], found["footprint"]["mib"]
    quarter = len(mib) // 4
    rows = [
        (
            f"a camera unplugged {found['unplugged']} times",
            f"answered about again after {found['back_s_p50']} s (median), {found['back_s_max']} s"
            f" at most; {rtsp['live']['asked']} asked, {rtsp['answers']} answers",
        ),
        (
            "a reader who takes an answer every 45 s",
            f"{slow['live']['asked']} asked, {slow['answers']} answers,"
            f" {slow['live']['unread']} windows not asked about",
        ),
        (
            f"{found['abandoned']} sessions abandoned",
            "every block of the cache released"
            if found["blocks_released"]
            else "blocks of the cache still held",
        ),
        (
            "memory of all processes",
            f"{median(mib[quarter : 2 * quarter]):,.0f} MiB in the second quarter of the time,"
            f" {median(mib[-quarter:]):,.0f} in the last",
        ),
        (
            "threads and processes left",
            ", ".join(found["left_behind"]) or "none",
        ),
    ]
    return markdown(("half an hour" if found["minutes"] == 30 else "", "what became of it"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "live-speed": speed,
    "live-summary": summary,
    "live-rounds": by_round,
    "live-equality": equality,
    "live-steady": steady,
    "live-soak": soak,
    "live-age": by_age,
    "live-cameras": cameras,
}
