"""Tables of what was measured of the lab pair itself."""

from collections.abc import Callable

from benchmarks.figures.results import markdown, result


def scores() -> str:
    """Facts that each model gets right, beside a guess that never looks at the clip."""
    run = result("lab_scores")
    rows = [
        (
            model,
            f"{run[model]['facts']:.1%}",
            f"{run[f'{model}_blind']['facts']:.1%}",
            f"{run['wanted'][model]:.0%}",
        )
        for model in ("target", "drafter")
    ]
    first = f"facts right, {run['num_questions']} questions on unseen drives"
    return markdown((first, "lab pair", "never looking", "wanted"), rows)


def acceptance() -> str:
    """What the target accepts of the drafter's tokens and of its own earlier answers."""
    run = result("lab_acceptance")
    kinds = {
        "drafter's tokens as they are, first block": ("drafter_raw", ".3f"),
        "previous answer, first block of 50": ("previous_answer", ".1f"),
        "best of all earlier answers": ("best_earlier", ".1f"),
        "suffix memory, tokens a pass": ("suffix_tokens_per_pass", ".2f"),
        "blind 5-gram, top-1": ("blind_top1", ".3f"),
    }
    recorded = run["real"].values()
    rows = [
        (label, format(run["measured"][key], form), format(run["truth"][key], form), f"{real}")
        for (label, (key, form)), real in zip(kinds.items(), recorded, strict=True)
    ]
    first = f"one question, {run['num_clips']} seconds of a drive"
    return markdown((first, "lab pair", "the truth's words", "real 7B pair"), rows)


def timings() -> str:
    """Prefill and decode step of both models."""
    times = result("lab_timings")["milliseconds"]
    rows = [
        (
            f"{model}'s {part}",
            *(f"{times[model][part][key]:.1f}" for key in ("median", "p10", "p90")),
        )
        for model in ("target", "drafter")
        for part in ("prefill", "step")
    ]
    return markdown(("lab pair, one core each, float32", "median ms", "p10", "p90"), rows)


def parity() -> str:
    """The target's tokens on vLLM beside those of transformers."""
    run = result("lab_parity")
    rows = [
        (dtype, f"{run[dtype]['num_tokens']}", f"{run[dtype]['rate']:.2%}")
        for dtype in ("float32", "bfloat16")
    ]
    return markdown(("target, vLLM beside transformers", "tokens", "that differ"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "lab-scores": scores,
    "lab-acceptance": acceptance,
    "lab-timings": timings,
    "lab-parity": parity,
}
