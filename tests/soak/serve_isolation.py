"""Do the times of its answers tell a tenant what another tenant has asked?

    python -m tests.soak.serve_isolation --trials 40

In each trial tenant A asks about a new clip, then A again, then tenant B about the same clip, then
B about another new clip. B's two answers must take the same time, and B's usage must count no
cached token; A's second answer shows how large the difference would be. Prints a table, then one
line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import random
import statistics
import time
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from rig.servers import asking
from rig.serving import add_arguments, keep, running, workspace, write_clip

RESAMPLES = 2000


def ask(client: httpx.Client, clip: Path) -> tuple[float, int]:
    """The time of one short answer, and its cached tokens as its usage counts them."""
    body = asking(clip, "What is happening?", max_tokens=4, headstart={"stream": "camera"})
    began_s = time.monotonic()
    answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    took_s = time.monotonic() - began_s
    return took_s, answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def chance_of(first: list[float], second: list[float]) -> float:
    """The p-value of a permutation test on the median of paired differences."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    found, chance, as_much = abs(statistics.median(differences)), random.Random(0), 0
    for _ in range(RESAMPLES):
        thrown = [d if chance.random() < 0.5 else -d for d in differences]
        as_much += abs(statistics.median(thrown)) >= found
    return as_much / RESAMPLES


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--trials", type=int, default=40)
    arguments = parser.parse_args()
    with workspace(arguments) as here:
        tenants = {"a": ["key-a"], "b": ["key-b"]}
        with running(here.start_ours(tenants=tenants)) as server:
            a, b = server.client("key-a"), server.client("key-b")
            times: dict[str, list[float]] = {
                "a first": [],
                "a again": [],
                "b same": [],
                "b fresh": [],
            }
            cached: dict[str, int] = dict.fromkeys(times, 0)
            for trial in range(arguments.trials + 2):
                clips = [here.home / f"fresh-{trial}-{n}.mp4" for n in range(2)]
                for number, clip in enumerate(clips):
                    write_clip(clip, seed=1000 + 2 * trial + number)
                asked = {
                    "a first": (a, clips[0]),
                    "a again": (a, clips[0]),
                    "b same": (b, clips[0]),
                    "b fresh": (b, clips[1]),
                }
                order = list(asked)
                if trial % 2:  # alternate the order of B's two
                    order[2:] = order[:1:-1]
                for name in order:
                    took_s, num_cached = ask(*asked[name])
                    if trial >= 2:  # the first ones warm up
                        times[name].append(took_s)
                        cached[name] += num_cached
    table = Table("", "median ms", "cached tokens")
    for name, seconds in times.items():
        table.add_row(name, f"{statistics.median(seconds) * 1e3:.1f}", str(cached[name]))
    Console().print(table)
    figures = {
        "trials": arguments.trials,
        "median_ms": {n: round(statistics.median(s) * 1e3, 2) for n, s in times.items()},
        "cached_tokens": cached,
        "b_same_over_fresh": round(
            statistics.median(times["b same"]) / statistics.median(times["b fresh"]), 3
        ),
        "p_b_same_differs_from_fresh": chance_of(times["b same"], times["b fresh"]),
        "p_a_again_differs_from_first": chance_of(times["a again"], times["a first"]),
    }
    keep("serve_isolation", arguments, figures)


if __name__ == "__main__":
    main()
