"""Tables of the server: load, faults, hostile requests, tenants."""

import re
from collections.abc import Callable
from typing import Any

from benchmarks.figures.results import markdown, result

RUNS = ("first", "second", "third")
SERVERS = {
    "vLLM's server": "vLLM's server",
    "memory alone": "memory alone",
    "with the drafter": "with the drafter",
    "with faults": "ten minutes with faults",
}


def load() -> str:
    """Sixteen cameras on each server, second run."""
    run = result("serve_load_second-run")
    kinds = {
        "answers": ("answers", "d"),
        "lost": ("lost", "d"),
        "wrong": ("wrong", "d"),
        "answers a second": ("answers_per_s", ".2f"),
        "p50, ms": ("p50_ms", ".0f"),
        "p95, ms": ("p95_ms", ".0f"),
        "p99, ms": ("p99_ms", ".0f"),
    }
    rows = [
        (label, *(format(run[server][key], form) for server in SERVERS))
        for label, (key, form) in kinds.items()
    ]
    return markdown(("", *SERVERS.values()), rows)


def load_of_three_runs() -> str:
    """Answers a second of the servers without faults, in each run."""
    runs = [result(f"serve_load_{name}-run") for name in RUNS]
    rows = [
        (label, *(f"{run[server]['answers_per_s']:.2f}" for run in runs))
        for server, label in SERVERS.items()
        if server != "with faults"
    ]
    return markdown(("answers a second", *(f"{name} run" for name in RUNS)), rows)


def faults() -> str:
    """How often each fault was made in the second run."""
    run = result("serve_load_second-run")
    made = run["with faults"]["faults"]
    rows = [
        ("drafter killed", f"{made['drafter_killed']}"),
        ("drafter stopped for three seconds", f"{made['drafter_stopped']}"),
        (
            "drafter replaced by an impostor",
            f"{made['drafter_lying']} ({run['lies']} false drafts)",
        ),
        ("eight clients leaving mid-stream", f"{made['clients_leaving']}"),
        ("a thousand silent connections", f"{made['half_open']}"),
    ]
    return markdown(("fault", "times"), rows)


def memory() -> str:
    """Resident memory under faults, minute by minute."""
    third, second = (
        result(f"serve_load_{name}-run")["with faults"] for name in ("third", "second")
    )
    series = {
        "server, third run": third["server_mib_by_minute"],
        "target's engine, third run": third["engine_mib_by_minute"],
        "target's engine, second run": second["engine_mib_by_minute"],
    }
    minutes = max(map(len, series.values()))
    rows = [
        (label, *(f"{mib}" for mib in values), *[""] * (minutes - len(values)))
        for label, values in series.items()
    ]
    return markdown(("MiB in minute", *(f"{minute + 1}" for minute in range(minutes))), rows)


def kill() -> str:
    """The target's engine killed under sixteen answers."""
    run = result("serve_kill")
    slowest_ready_s = max(run["each"]["a new one ready, s"])
    rows = [
        ("requests that ended with an error of their own", f"{run['requests'] - run['unclean']}"),
        ("requests that did not", f"{run['unclean']}"),
        ("last request ended after", f"{run['slowest_request_s']:.2f} s"),
        ("`/ready` red after at most", f"{run['slowest_not_ready_s']:.2f} s"),
        ("exit codes of the server", ", ".join(map(str, sorted(set(run["each"]["exit code"]))))),
        ("a new server ready after at most", f"{slowest_ready_s:.1f} s"),
    ]
    return markdown(("engine killed five times", ""), rows)


def fuzz() -> str:
    """Requests that nobody should send."""
    run = result("serve_fuzz")
    generated = re.search(r"(\d+) generated", run["schemathesis"])
    assert generated, "serve_fuzz's result does not say how many requests schemathesis made"
    rows = [
        ("requests made by hand", f"{run['requests']:,}"),
        ("requests made by schemathesis from our schema", f"{int(generated[1]):,}"),
        ("answers with a 500, a path or a trace", f"{run['found']}"),
        ("same answers as before, afterwards", "yes" if run["still_right"] else "no"),
    ]
    return markdown(("hostile requests", ""), rows)


def fuzz_valid() -> str:
    """Valid values of every field, and damaged files."""
    run = result("serve_fuzz_valid")
    beside_fuzz = run["neighbour"]["beside the fuzz"]
    rows = [
        ("request bodies", f"{run['requests']:,}"),
        ("damaged files", f"{run['files']:,} of {len(run['files_by_format'])} formats"),
        ("answers with a 5xx, a path or a key", f"{run['found']}"),
        ("engine processes replaced", "some" if run["engine_changed"] else "0"),
        ("ports opened", f"{len(run['ports'])}"),
        ("most processes at once", f"{run['peak_processes']}"),
        ("most memory, shared pages counted in each", f"{run['peak_mib']:,} MiB"),
        ("decoders traced", f"{run['strace']['confined_processes']}"),
        ("files or sockets they opened", f"{len(run['strace']['calls_that_got_through'])}"),
        (
            "another tenant's p95 beside ordinary clips",
            f"{run['neighbour']['beside ordinary load']['p95_ms']:.0f} ms",
        ),
        ("the same beside the fuzz", f"{beside_fuzz['p95_ms']:.0f} ms"),
        ("its slowest answer beside the fuzz", f"{beside_fuzz['max_ms']:.0f} ms"),
    ]
    return markdown(("valid requests and damaged files", ""), rows)


def attacked_by_bytes() -> str:
    """A tenant beside clients that speak bytes, not messages."""
    run = result("serve_bytes")
    by_bytes = {name: one for name, one in run["attacks"].items() if "quiet" in one}
    working = run["attacks"]["admitted"]

    def figures(one: dict[str, Any], before: str, question: str, which: str = "p95") -> str:
        without, beside = (one[kind][question][f"{which}_ms"] for kind in (before, "attacked"))
        return f"{without:.1f} -> {beside:.1f}"

    loads = sorted(load for one in run["attacks"].values() for load in one["load"])
    memory = run["memory_mib"]
    rows = [
        ("minutes, kinds of attack", f"{run['minutes']:.0f}, {len(run['attacks'])}"),
        ("`GET /v1/models`: median beside bytes, ms", figures(run, "quiet", "models", "p50")),
        ("the same, p95", figures(run, "quiet", "models")),
        ("an answer of 4 tokens: median beside bytes, ms", figures(run, "quiet", "answer", "p50")),
        ("the same, p95", figures(run, "quiet", "answer")),
        ("the first, p95 beside admitted work", figures(working, "polite", "models")),
        ("the second, p95 beside admitted work", figures(working, "polite", "answer")),
        ("bytes sent", f"{sum(o['done'].get('bytes', 0) for o in by_bytes.values()) / 1e9:.1f} GB"),
        ("memory before and after", f"{memory['before']:,.0f} and {memory['after']:,.0f} MiB"),
        ("load of the two cores, median", f"{loads[len(loads) // 2]:.0f}"),
        ("left behind", f"{len(run['left'])}"),
        ("bounds broken: two for each attack, and memory", f"{len(run['faults'])}"),
    ]
    busy = [run[which].get("loop_busy") for which in ("quiet", "attacked")]
    if None not in busy:
        rows.append(("the event loop was busy, of the time", f"{busy[0]:.0%} -> {busy[1]:.0%}"))
    return markdown(("attacked by bytes", "without -> beside"), rows)


def isolation() -> str:
    """What a tenant can learn from the time of its answers."""
    run = result("serve_isolation")
    labels = {
        "a first": "A asks about a new clip",
        "a again": "A asks about it again",
        "b same": "B asks about the clip that A showed",
        "b fresh": "B asks about a new clip",
    }
    rows = [
        (label, f"{run['median_ms'][key]:.0f}", f"{run['cached_tokens'][key]:,}")
        for key, label in labels.items()
    ]
    ratio, chance = run["b_same_over_fresh"], run["p_b_same_differs_from_fresh"]
    rows.append(("B's third row over its fourth", f"{ratio:.2f} (p {chance:.2f})", ""))
    return markdown(("", "median ms", "cached tokens"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "serve-load": load,
    "serve-load-runs": load_of_three_runs,
    "serve-faults": faults,
    "serve-memory": memory,
    "serve-kill": kill,
    "serve-fuzz": fuzz,
    "serve-fuzz-valid": fuzz_valid,
    "serve-bytes": attacked_by_bytes,
    "serve-isolation": isolation,
}
