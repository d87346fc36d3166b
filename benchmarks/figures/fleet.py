"""Tables of fleets: as planned, streams behind a router, memories that travel, a restart."""

from collections.abc import Callable
from typing import Any

from benchmarks.figures.results import markdown, result

RUNS = {
    "fleet_stream": "by stream, with a store",
    "fleet_stream_no-store": "by stream, no store",
    "fleet_round-robin": "in turn, with a store",
}
"""The kept runs by what the router and the servers do."""
FAULTS = ("lost", "doubled", "wrong")


def plan() -> str:
    """The plan of three fleets."""
    planned = result("fleet_plan")
    rows = [
        (
            f"{row['cameras']:,}",
            row["method"],
            str(row["held"]),
            f"{row['engines']:,}",
            f"{row['fill']:.0%}",
            f"{row['kv_gib']:,.1f}",
            f"{row['network_gbit_a_second']:.3g}",
            f"{row['price_a_camera_and_month']:,.0f}",
        )
        for row in planned["fleets"]
    ]
    headings = ("cameras", "", "held by an engine", "engines", "fill", "KV GiB", "Gbit/s in")
    return markdown((*headings, "prices of a GPU hour, a camera and month"), rows)


def _runs() -> list[tuple[str, Any]]:
    return [(words, result(name)) for name, words in RUNS.items()]


def phases() -> str:
    """What became of questions, before, after a kill and after a drain."""
    rows = []
    for words, run in _runs():
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
    rows = [
        (
            words,
            f"{run['live']['windows']}, of {run['live']['cameras']} cameras",
            ", ".join(str(run["live"][name]) for name in FAULTS),
            str(run["live"]["moves"]),
            f"{run['live']['longest_gap_s']:.1f} s",
        )
        for words, run in _runs()
    ]
    headings = ("routed", "windows", "lost, doubled, wrong", "moves", "longest gap")
    return markdown(headings, rows)


def hand_over() -> str:
    """Memories taken from server to server."""
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


def restart() -> str:
    """What became of the windows while servers were restarted."""
    found = result("rolling_restart")
    drained = " and ".join(f"{seconds:.1f} s" for seconds in found["drained_s"])
    rows = [
        ("windows shown", f"{found['windows']}, of {found['cameras']} cameras"),
        ("moves of a camera to another server", str(found["moves"])),
        (
            "windows without an answer, with two, with a wrong one",
            ", ".join(str(found[name]) for name in FAULTS),
        ),
        ("draining took", drained),
        ("from connecting anew to the first answer, at most", f"{found['longest_gap_s']:.1f} s"),
    ]
    return markdown(("two servers, restarted in turn", ""), rows)


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _share(number: float | None) -> str:
    return "" if number is None else f"{number:.0%}"


TABLES: dict[str, Callable[[], str]] = {
    "fleet-plan": plan,
    "fleet-phases": phases,
    "fleet-live": live,
    "fleet-hand-over": hand_over,
    "rolling-restart": restart,
}
