"""Tables of docs/guides/fleet.md: streams behind a router, and memories that travel."""

from collections.abc import Callable
from typing import Any

from benchmarks.figures.results import NOT_KEPT, is_kept, markdown, result

RUNS = {
    "fleet_stream": "by stream, with a store",
    "fleet_stream_no-store": "by stream, no store",
    "fleet_round-robin": "in turn, with a store",
}
"""The kept runs by what the router and the servers do."""


def _kept() -> dict[str, Any]:
    return {words: result(name) for name, words in RUNS.items() if is_kept(name)}


def phases() -> str:
    """What became of questions, before, after a kill and after a drain."""
    if not _kept():
        return NOT_KEPT
    rows = []
    for words, run in _kept().items():
        for phase, found in run["phases"].items():
            rows.append(
                (
                    words,
                    phase,
                    f"{found['asked']:,}",
                    f"{found['lost']}, {found['wrong']}",
                    str(sum(found["asked_again"].values())),
                    str(found["answers_after_a_move"]),
                    _figure(found["accepted_tokens_without_a_move"]),
                    _figure(found["accepted_tokens_after_a_move"]),
                    _share(found["cached_share_of_a_second_question"]),
                    f"{found['median_wait_s']:.2f} s",
                )
            )
    headings = (
        "routed",
        "",
        "questions",
        "lost, wrong",
        "asked again",
        "answers by another server than the last",
        "accepted tokens, same server",
        "accepted tokens, another server",
        "second question: prompt in the cache",
        "median wait",
    )
    return markdown(headings, rows)


def live() -> str:
    """What became of the windows of live cameras at the same router."""
    if not _kept():
        return NOT_KEPT
    rows = [
        (
            words,
            f"{run['live']['windows']}, of {run['live']['cameras']} cameras",
            ", ".join(str(run["live"][name]) for name in ("lost", "doubled", "wrong")),
            str(run["live"]["moves"]),
            f"{run['live']['longest_gap_s']:.1f} s",
        )
        for words, run in _kept().items()
    ]
    headings = ("routed", "windows", "lost, doubled, wrong", "moves", "longest gap")
    return markdown(headings, rows)


def hand_over() -> str:
    """Memories taken from server to server."""
    if not is_kept("fleet_stream"):
        return NOT_KEPT
    found = result("fleet_stream")["hand_over"]
    rows = [
        (
            "streams, each with the memory of",
            f"{found['streams']}, {found['answers_a_stream']} answers",
        ),
        ("a memory's size", f"{found['bytes_a_stream']:,} bytes"),
        (
            "export and import of one, median; of all",
            f"{found['median_ms_a_stream']:.1f} ms; {found['all_ms']:,.0f} ms",
        ),
        (
            "accepted tokens of the next answer: where the stream was",
            f"{found['accepted_tokens_where_it_was']:.1f}",
        ),
        (
            "on the other server, with its memory",
            f"{found['accepted_tokens_after_the_move']:.1f}",
        ),
        ("on the other server, without", f"{found['accepted_tokens_without_memory']:.1f}"),
        ("answers with the same text on all three", str(found["same_text"])),
    ]
    return markdown(("hand-over", ""), rows)


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _share(number: float | None) -> str:
    return "" if number is None else f"{number:.0%}"


TABLES: dict[str, Callable[[], str]] = {
    "fleet-phases": phases,
    "fleet-live": live,
    "fleet-hand-over": hand_over,
}
