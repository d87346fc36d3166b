"""Tables of logged answers replayed without a model."""

from collections.abc import Callable

from benchmarks.figures.results import markdown, result

METHODS = {
    "drafter raw": "the drafter's tokens as they are",
    "previous answer": "previous answer (blind)",
    "5-gram back-off": "5-gram back-off (blind)",
    "recent suffix": "recent suffix, plain",
    "ngram": "ngram (answer only: the log has no prompts)",
    "memory": "**memory**",
    "memory + drafter's words": "memory and the drafter's tokens",
    "oracle over the past": "oracle over the past *",
}


def block(figures: dict[str, float]) -> str:
    """The mean number accepted of the first draft."""
    accepted = figures["first_block"]
    return f"{accepted:.2f}" if accepted >= 0.1 else f"{accepted:.3f}"


def logs() -> str:
    """Every method on both logs."""
    one, ten = result("replay_one-question"), result("replay_ten-questions")
    rows = [
        (
            label,
            f"{one[method]['tokens_per_pass']:.2f}",
            block(one[method]),
            f"{one[method]['passes_p50']}, {one[method]['passes_p95']}",
            f"{ten[method]['tokens_per_pass']:.2f}" if method in ten else "",
        )
        for method, label in METHODS.items()
    ]
    headings = (
        "method",
        "one question: tokens/pass",
        "first block",
        "passes p50, p95",
        "ten questions: words/pass",
    )
    return markdown(headings, rows)


def warm() -> str:
    """Own against warm memory on one log, cut into streams of different lengths."""
    rows = []
    for length in (10, 22, 55, 110):
        run = result(f"replay_cut-{length}")
        own, all_streams = run["memory, own stream only"], run["memory"]
        ages = own["by_age"]
        rows.append(
            (
                f"{length}",
                f"{own['tokens_per_pass']:.2f}",
                f"{all_streams['tokens_per_pass']:.2f}",
                *(
                    f"{ages[age]:.2f}, {all_streams['by_age'][age]:.2f}" if age in ages else ""
                    for age in ("1", "2", "3-5", "6-10", "11-20", "21-50")
                ),
            )
        )
    headings = (
        "answers a stream",
        "own stream only: tokens/pass",
        "memory: tokens/pass",
        *(f"own, memory: answer {age}" for age in ("1", "2", "3-5", "6-10", "11-20", "21-50")),
    )
    return markdown(headings, rows)


def independent_count() -> str:
    """The first log beside a count of it that was made before this code."""
    plain, short = result("replay_one-question"), result("replay_drafts-of-16")["recent suffix"]
    rows = [
        (f"first block, {label}", recorded, block(plain[method]))
        for label, method, recorded in (
            ("the drafter's tokens", "drafter raw", "0.007"),
            ("previous answer", "previous answer", "19.8"),
            ("oracle", "oracle over the past", "28.8"),
        )
    ]
    rows += [
        ("first block, suffix memory", "19.5", block(short)),
        ("tokens/pass, suffix memory, drafts of 16", "5.9", f"{short['tokens_per_pass']:.2f}"),
        (
            "its passes p50, p95",
            "7, 20",
            f"{short['passes_p50']}, {short['passes_p95']}",
        ),
    ]
    return markdown(("", "independent count", "this replay"), rows)


def ranker() -> str:
    """Memory and the ranker on the part of a log that neither has learnt from."""
    run = result("ranker")
    labels = {
        "memory": "memory",
        "ranker, frozen": "ranker that stopped learning after 660 answers",
        "ranker, online": "**ranker**",
    }
    rows = []
    for name, label in labels.items():
        row = run[name]
        low, high = row["between"]
        gain = "{:+.2f} to {:+.2f}".format(*row["gain_between"]) if name != "memory" else ""
        rows.append(
            (
                label,
                f"{row['tokens_per_pass']:.2f} ({low:.2f} to {high:.2f})",
                gain,
                f"{row['first_block']:.2f}",
                f"{row['passes_p50']}, {row['passes_p95']}",
                f"{row['draft_ms_p50']:.2f}, {row['draft_ms_p99']:.2f}",
            )
        )
    headings = (
        "",
        "tokens/pass",
        "more than memory",
        "first block",
        "passes p50, p95",
        "ms a draft of 32: p50, p99",
    )
    return markdown(headings, rows)


TABLES: dict[str, Callable[[], str]] = {
    "replay-logs": logs,
    "replay-independent-count": independent_count,
    "replay-warm": warm,
    "ranker": ranker,
}
