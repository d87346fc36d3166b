"""Kills the target's engine under load: how soon does every request end, and how?

    python -m tests.soak.serve_kill --streams 16 --times 5

Each time it starts a server, sends one request per stream, half of them streamed, and sends SIGKILL
to the process that holds the target. It measures when the last request has ended, when `/ready` is
no longer 200, when the server has ended, and how long a new server takes until it is ready. Prints
a table, then one line of JSON, which is also kept in benchmarks/results; exits with 1 if a request
ended without an error of its own.
"""

import argparse
import contextlib
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from rig.servers import asking
from rig.serving import QUESTIONS, Clip, Server, add_arguments, keep, running, workspace

CHAT = "/v1/chat/completions"
IN_FLIGHT_S = 3.0  # so that some requests are in prefill and some in decode


@dataclass(frozen=True)
class End:
    """How one request ended."""

    at_s: float
    how: str
    is_clean: bool


@dataclass(frozen=True)
class Killed:
    """The end of a server whose engine was killed."""

    start_s: float
    last_request_s: float
    not_ready_s: float
    ended_s: float
    exit_code: int
    ends: list[End]


def ask(server: Server, clip: Clip, number: int) -> End:
    """Ask for an answer that outlasts the engine; returns how the request ended."""
    question = QUESTIONS[number % len(QUESTIONS)]
    streamed = number % 2 == 0
    body = asking(clip.video_url, question, max_tokens=1000, ignore_eos=True, stream=streamed)
    try:
        reply = server.client().post(CHAT, json=body)
    except httpx.TransportError as error:
        return End(time.monotonic(), f"{type(error).__name__}", is_clean=False)
    said = '"error"' in reply.text
    how = f"{reply.status_code}, {'streamed' if streamed else 'whole'}"
    # A stream that has begun has sent its 200 already; its last chunk holds the error.
    is_clean = said and (reply.status_code == 503 or (streamed and reply.status_code == 200))
    return End(time.monotonic(), how, is_clean)


def kill(server: Server, clips: list[Clip], num_streams: int, start_s: float) -> Killed:
    """Kill the engine while requests are in flight."""
    not_ready = threading.Event()
    not_ready_s: list[float] = []

    def watch() -> None:
        client = server.client()
        while not not_ready.is_set():
            with contextlib.suppress(httpx.TransportError):
                if client.get("/ready").status_code == 200:
                    time.sleep(0.02)
                    continue
            not_ready_s.append(time.monotonic())
            not_ready.set()

    with ThreadPoolExecutor(num_streams + 1) as threads:
        asked = [
            threads.submit(ask, server, clips[number % len(clips)], number)
            for number in range(num_streams)
        ]
        threads.submit(watch)
        time.sleep(IN_FLIGHT_S)
        killed_s = time.monotonic()
        server.engine().kill()
        ends = [one.result() for one in asked]
        exit_code = server.process.wait(60)
        ended_s = time.monotonic()
    return Killed(
        start_s,
        max(end.at_s for end in ends) - killed_s,
        not_ready_s[0] - killed_s,
        ended_s - killed_s,
        exit_code,
        ends,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    found = []
    with workspace(arguments) as here:
        for _ in range(arguments.times):
            began_s = time.monotonic()
            with running(here.start_ours()) as server:
                start_s = time.monotonic() - began_s
                found.append(kill(server, here.listed(), arguments.streams, start_s))
    rows: dict[str, list[Any]] = {
        "last request ended, s": [round(one.last_request_s, 2) for one in found],
        "not ready, s": [round(one.not_ready_s, 2) for one in found],
        "server ended, s": [round(one.ended_s, 2) for one in found],
        "exit code": [one.exit_code for one in found],
        "a new one ready, s": [round(one.start_s, 1) for one in found],
    }
    table = Table("", *(str(number + 1) for number in range(len(found))))
    for name, values in rows.items():
        table.add_row(name, *map(str, values))
    console = Console()
    console.print(table)
    ends = [end for one in found for end in one.ends]
    hows = Counter(end.how for end in ends)
    unclean = [end.how for end in ends if not end.is_clean]
    console.print(dict(hows), f"{len(unclean)} without an error of their own")
    figures = {
        "streams": arguments.streams,
        "slowest_request_s": max(rows["last request ended, s"]),
        "slowest_not_ready_s": max(rows["not ready, s"]),
        "requests": len(ends),
        "unclean": len(unclean),
        "ended_as": dict(hows),
        "each": rows,
    }
    keep("serve_kill", arguments, figures)
    if unclean:
        sys.exit(1)


if __name__ == "__main__":
    main()
