"""Tables of what was compared token for token, and of what headstart's engine costs."""

from collections.abc import Callable

from benchmarks.figures.results import markdown, result


def lossless() -> str:
    """Answers with drafts beside bare vLLM's, on the lab pair."""
    rows = []
    runs = {
        "float32": "lossless_float32",
        "float32, with a bridge": "lossless_bridge_float32",
        "bfloat16": "lossless_bfloat16",
    }
    for label, name in runs.items():
        run = result(name)
        keys = ("settings", "questions", "drafted_tokens", "accepted_tokens", "num_differences")
        rows.append((label, *(f"{run[key]:,}" for key in keys)))
    headings = ("settings", "answers", "tokens drafted", "accepted", "answers that differ")
    return markdown(("", *headings), rows)


def promise() -> str:
    """Settings of vLLM on two engines, and random schedules without an engine."""
    keys = ("answers", "drafted", "accepted", "preemptions", "differences")
    engines, schedules = result("promise"), result("schedule_fuzz")
    rows = [
        ("real engines", f"{engines['cells']}", *(f"{engines[key]:,}" for key in keys)),
        ("random schedules", f"{schedules['plans']}", *(f"{schedules[key]:,}" for key in keys)),
    ]
    headings = ("settings", "answers", "tokens drafted", "accepted", "preemptions", "differences")
    return markdown(("", *headings), rows)


def overhead() -> str:
    """`Headstart` without drafts beside plain `vllm.LLM`."""
    rows = []
    for label, name in (("vllm.LLM", ""), ("Headstart", "_headstart-first")):
        run = result(f"engine_overhead{name}")
        low, high = run["interval_95"]
        spread = f"{run['ratio_of_medians']:.2f} ({low:.2f} to {high:.2f})"
        rows.append((f"`{label}`", spread, f"{run['repeats']}"))
    return markdown(("engine built first", "end to end (95%)", "answers"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "lossless": lossless,
    "promise": promise,
    "overhead": overhead,
}
