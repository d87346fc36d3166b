"""Tables of live cameras over sockets: beside bare vLLM, beside abusers, and a fuzz."""

from collections.abc import Callable
from typing import Any

from benchmarks.figures.results import markdown, result

ABUSERS = {
    "behaves": ("behaves: one more camera", "frames", "{:,} frames"),
    "killed": ("is killed in the middle of a window", "killed", "{:,} times"),
    "frozen": ("freezes, and reads nothing", "most unread bytes", "{:,} bytes waited for it"),
    "rubbish": ("sends rubbish", "messages", "{:,} messages"),
    "too fast": ("sends as fast as it can", "frames", "{:,} frames"),
    "one name twice": ("has one name twice", "frames", "{:,} frames"),
}
"""How each is called, and which figure of a round says what it did."""
UNANSWERED = ("dropped", "unread", "lost")


def waits(run: Any) -> str:
    """From the last frame to the last word, side by side."""
    rows = [
        (
            f"{name}, ms",
            f"{run['bare'][f'{p}_ms']:.0f}",
            f"{run['headstart'][f'{p}_ms']:.0f}",
            f"{run[f'ratio_{p}']:.2f}",
            ", ".join(f"{one[f'ratio_{p}']:.2f}" for one in run["by_round"]),
        )
        for p, name in (("p50", "half of the answers within"), ("p95", "95% within"))
    ]
    what = f"{run['cameras']} cameras, windows of {run['window_s']:g} s"
    return markdown((what, "bare vLLM", "headstart", "ratio", "by round"), rows)


def fates(run: Any) -> str:
    """What became of windows, answers and memory."""
    fate, memory = run["windows"], run["memory"]
    rows = [
        ("answers equal to bare vLLM's", f"{run['equal']} of {run['compared']}"),
        ("windows dropped, unread, lost", ", ".join(f"{fate[n]}" for n in UNANSWERED)),
        (
            "memory of the server's processes",
            f"{memory['begin_mib']:,.0f} MiB at the beginning, {memory['end_mib']:,.0f} at the"
            f" end; {memory['thirds_mib'][1]:,.0f} in the second third of the time,"
            f" {memory['thirds_mib'][2]:,.0f} in the last",
        ),
    ]
    return markdown(("the live rounds together", ""), rows)


def abusers(run: Any) -> str:
    """The waits of cameras that behave beside one client that does not."""
    rows = []
    for name, found in run["abuses"].items():
        label, figure, form = ABUSERS[name]
        by_round = [one for one in found["ratio_p95_by_round"] if one is not None]
        rows.append(
            (
                label,
                f"{found['without']['p95_ms']:.0f}",
                f"{found['with']['p95_ms']:.0f}",
                f"{found['ratio_p95']:.2f}",
                ", ".join(f"{one:.2f}" for one in by_round),
                form.format(max(done.get(figure, 0) for done in found["abuser"])),
            )
        )
    headings = ("p95 without it, ms", "with it, ms", "ratio", "by round", "what it did in a round")
    return markdown(("a client that", *headings), rows)


def fuzz(run: Any) -> str:
    """Messages that nobody should send."""
    sent, said = run["sent"], run["said"]
    memory, after = run["memory"], run["after"]
    closes = {kind.removeprefix("close "): n for kind, n in said.items() if "close " in kind}
    rows = [
        ("messages, of so many kinds", f"{run['messages']:,}, {len(sent)}"),
        ("cameras begun or resumed", f"{said['started']:,}"),
        ("answers", f"{said['answer']:,}"),
        ("refusals", f"{sum(n for name, n in said.items() if name.startswith('error ')):,}"),
        (
            "sockets ended by the server, by code (1006: a reset overtook it)",
            ", ".join(
                f"{n:,} with {how}" if how.isdigit() else f"{n:,} {how}"
                for how, n in closes.items()
            ),
        ),
        ("errors of the server's own, secrets, silences", f"{run['found']}"),
        (
            "the neighbour's answers, and those that differ",
            f"{run['neighbour']['answers']:,}, {run['neighbour']['wrong']}",
        ),
        ("cameras, blocks, requests left", "some" if run["left"] else "none"),
        (
            "threads and processes, before and after",
            f"{run['before']['num_threads']} and {run['before']['num_processes']},"
            f" {after['num_threads']} and {after['num_processes']}",
        ),
        (
            "memory, second and last third of the time",
            f"{memory['thirds_mib'][1]:,.0f} and {memory['thirds_mib'][2]:,.0f} MiB",
        ),
    ]
    return markdown(
        (f"{run['clients']} clients of two tenants, {run['minutes']} minutes", ""), rows
    )


TABLES: dict[str, Callable[[], str]] = {
    "live-sockets": lambda: waits(result("serve_live")),
    "live-sockets-fates": lambda: fates(result("serve_live")),
    "live-abusers": lambda: abusers(result("serve_live_abusers")),
    "live-fuzz": lambda: fuzz(result("serve_live_fuzz")),
}
