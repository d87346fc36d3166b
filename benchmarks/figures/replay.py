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


def ablations() -> str:
    """Tokens per pass of memory with one thing changed."""
    run = result("memory_ablations")
    labels = {
        "memory": "as it is",
        "first draft of 32": "first draft of 32 too",
        "drafts of 16": "drafts of 16",
        "drafts of 64": "drafts of 64",
        "one piece a draft": "one piece a draft: no second look where the copy ends",
        "recency vote at forks": "places vote at a fork, weighed by recency",
        "at most 32 answers": "at most 32 answers remembered (512 as it is)",
        "at most 128 answers": "at most 128",
        "at most 2048 answers": "at most 2048",
        "first by draft, of last 4": "first draft by likeness of the drafter's words, last 4",
        "first by draft, of last 16": "the same, last 16",
        "first by draft, of last 400": "the same, last 400",
        "learned mixture": "learned mixture of fourteen context lengths",
    }
    keys = ("tokens_per_pass", "first_half", "second_half")
    rows = [(label, *(f"{run[name][key]:.2f}" for key in keys)) for name, label in labels.items()]
    return markdown(("change to memory", "tokens/pass", "first half", "second half"), rows)


def bounds() -> str:
    """What the first log says of the drafter's words, and of new words."""
    log = result("memory_ablations")["log"]
    rows = [
        ("clips on which the drafter repeats itself exactly", f"{log['cases']}"),
        ("tokens agreed with the answer of that earlier clip", f"{log['same_draft']:.1f}"),
        ("tokens agreed with the answers of the clips beside it", f"{log['other_draft']:.1f}"),
        ("times an answer puts a word after another for the first time", f"{log['new_pairs']:.1f}"),
    ]
    return markdown(("one question", ""), rows)


def suffix_cache() -> str:
    """arctic-inference's cache beside memory, on both logs."""
    one, ten = result("suffix_cache_one-question"), result("suffix_cache_ten-questions")
    rows = [
        (
            method,
            f"{figures['tokens_per_pass']:.2f}",
            f"{figures['first_block']:.2f}",
            f"{ten[method]['tokens_per_pass']:.2f}",
        )
        for method, figures in one.items()
        if isinstance(figures, dict) and "first_block" in figures
    ]
    headings = ("", "one question: tokens/pass", "first block", "ten questions: words/pass")
    return markdown(headings, rows)


def proposals() -> str:
    """How long a proposal takes."""
    run = result("drafting")
    labels = {
        "board": "board, draft in step",
        "board_resync": "board, draft to be found again",
        "memory": "memory",
        "memory_worst": "memory, one word repeated: the most work we could make for it",
        "warm_memory": "warm memory, on a stream with 500 answers",
        "warm_memory_new_stream": "warm memory, on a new stream",
        "cascade": "cascade of memory and ngram, a draft posted beside",
    }
    keys = ("us_p50", "us_p99", "us_cpu_max")
    rows = [
        (label, *(f"{run[f'{part}_{key}']:.0f}" for key in keys)) for part, label in labels.items()
    ]
    return markdown(("microseconds", "p50", "p99", "longest on the processor"), rows)


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
    "replay-ablations": ablations,
    "replay-bounds": bounds,
    "replay-suffix-cache": suffix_cache,
    "replay-proposals": proposals,
    "ranker": ranker,
}
