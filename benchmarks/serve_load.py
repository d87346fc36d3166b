"""Many streams on one server for minutes, with faults: is anything lost, wrong or slower?

    python -m benchmarks.serve_load --streams 16 --minutes 10 --fault-every 20

Each stream asks the same questions about the same clips again and again, half of them streamed,
and compares every answer with what vLLM's plain server said before. First the same load without
faults and without previews on both servers, one after the other: throughput and times beside each
other. Then with faults, and previews of what is streamed. The log's disk is full from the first
line on. Prints a table, then one line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import contextlib
import itertools
import json
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
from benchmarks.serving import (
    QUESTIONS,
    Clip,
    Server,
    add_arguments,
    ground,
    keep,
    running,
)
from rich.console import Console
from rich.table import Table
from tests.serve.servers import asking, chunks_of, content_of, with_events

from headstart.engine import wire
from headstart.engine.line import Line, send

CHAT = "/v1/chat/completions"


@dataclass
class Tally:
    """What came of a run. Lists are appended to by many threads, which Python allows."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    told_to_wait: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    rss_mib: list[tuple[float, float]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    elapsed_s: float = 0.0

    def figures(self) -> dict[str, Any]:
        """For people and for JSON."""
        ordered = sorted(self.seconds)

        def quantile(share: float) -> float:
            return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 1)

        half = [mib for at_s, mib in self.rss_mib if at_s > self.elapsed_s / 2]
        return {
            "answers": len(ordered),
            "lost": len(self.lost),
            "wrong": len(self.wrong),
            "told_to_wait": len(self.told_to_wait),
            "answers_per_s": round(len(ordered) / max(self.elapsed_s, 1e-9), 2),
            **({f"p{n}_ms": quantile(n / 100) for n in (50, 95, 99)} if ordered else {}),
            "accepted_share": round(sum(self.accepted) / max(1, sum(self.tokens)), 3),
            "rss_second_half_mib": [round(half[0]), round(half[-1])] if half else [],
            "faults": dict(self.faults),
        }


@dataclass(frozen=True)
class Load:
    """Streams that ask and compare."""

    clips: list[Clip]
    expected: dict[tuple[str, str], str]
    max_tokens: int
    streams: int
    seconds: float
    headstart: bool
    previews: bool = False

    def run(self, server: Server, fault: Callable[[int], str] | None, every_s: float) -> Tally:
        """Until the time is over; every request that was begun is finished."""
        tally, began_s = Tally(), time.monotonic()
        stop_s = began_s + self.seconds
        threads = [
            threading.Thread(target=self._stream, args=(server, number, stop_s, tally))
            for number in range(self.streams)
        ]
        for thread in threads:
            thread.start()
        next_fault_s, number = began_s + every_s, 0
        while time.monotonic() < stop_s and server.process.poll() is None:
            tally.rss_mib.append((time.monotonic() - began_s, _rss_mib(server)))
            if fault is not None and time.monotonic() >= next_fault_s:
                tally.faults[fault(number)] += 1
                next_fault_s, number = next_fault_s + every_s, number + 1
            time.sleep(1)
        for thread in threads:
            thread.join()
        tally.elapsed_s = time.monotonic() - began_s
        return tally

    def _stream(self, server: Server, number: int, stop_s: float, tally: Tally) -> None:
        chance = random.Random(number)
        with httpx.Client(base_url=server.url, timeout=300, trust_env=False) as client:
            while time.monotonic() < stop_s:
                clip, question = chance.choice(self.clips), chance.choice(QUESTIONS)
                body = asking(clip.video_url, question, max_tokens=self.max_tokens)
                body["stream"] = chance.random() < 0.5
                if self.headstart:
                    previewed = self.previews and body["stream"]
                    body["headstart"] = {"stream": f"camera-{number}", "preview": previewed}
                    if clip.events is not None:
                        body = with_events(body, url=clip.events.as_uri())
                self._ask(client, body, (clip.name, question), tally)

    def _ask(self, client: httpx.Client, body: Any, name: tuple[str, str], tally: Tally) -> None:
        began_s = time.monotonic()
        try:
            reply = client.post(CHAT, json=body)
        except httpx.TransportError as error:
            tally.lost.append(repr(error))
            return
        if reply.status_code == 429:
            tally.told_to_wait.append(1)
            time.sleep(float(reply.headers["retry-after"]))
            return
        if reply.status_code != 200:
            tally.lost.append(f"{reply.status_code} {reply.text[:200]}")
            return
        try:
            told: dict[str, Any]
            if body["stream"]:
                chunks = chunks_of(reply.text)
                text, told = content_of(chunks), chunks[-1].get("headstart", {})
            else:
                answer = reply.json()
                text = answer["choices"][0]["message"]["content"]
                told = answer.get("headstart", {})
                tally.tokens.append(answer["usage"]["completion_tokens"])
                tally.accepted.append(told.get("accepted_tokens", 0))
        except (AssertionError, KeyError, ValueError) as error:
            tally.lost.append(f"{error!r} {reply.text[-200:]}")
            return
        tally.seconds.append(time.monotonic() - began_s)
        if text != self.expected[name]:
            tally.wrong.append(f"{name}: {text!r}, not {self.expected[name]!r}")


def _rss_mib(server: Server) -> float:
    """Of the server and its target; the drafter starts anew under faults."""
    total = 0
    with contextlib.suppress(psutil.Error):
        total = psutil.Process(server.process.pid).memory_info().rss
        for child in server.children():
            with contextlib.suppress(psutil.Error):
                if "drafter_process" not in " ".join(child.cmdline()):
                    total += child.memory_info().rss
    return total / 2**20


class Faults:
    """One after the other, round and round."""

    def __init__(self, server: Server, clip: Clip) -> None:
        self._server = server
        self._clip = clip
        self._kinds = itertools.cycle(
            [self.drafter_killed, self.drafter_stopped, self.noise, self.leave, self.half_open]
        )

    def __call__(self, number: int) -> str:
        """Commit the next one; its name."""
        kind = next(self._kinds)
        with contextlib.suppress(psutil.Error, OSError, httpx.HTTPError):
            kind()
        return kind.__name__

    def _drafter(self) -> psutil.Process | None:
        for child in self._server.children():
            with contextlib.suppress(psutil.Error):
                if "drafter_process" in " ".join(child.cmdline()):
                    return child
        return None

    def drafter_killed(self) -> None:
        """It is started again."""
        if drafter := self._drafter():
            drafter.kill()

    def drafter_stopped(self) -> None:
        """For three seconds."""
        if drafter := self._drafter():
            drafter.send_signal(signal.SIGSTOP)
            threading.Timer(3.0, drafter.send_signal, [signal.SIGCONT]).start()

    def noise(self) -> None:
        """Lies and rubbish on the drafter's way to the scheduler."""
        if (drafter := self._drafter()) is None:
            return
        told = next(word for word in drafter.cmdline() if word.startswith("{"))
        socket_out = Line(json.loads(told)["line"]).drafts_out()
        try:
            time.sleep(0.2)
            for number in range(200):
                tokens = tuple(random.randrange(-9, 10**6) for _ in range(64))
                send(socket_out, wire.Drafted(f"{number}", "liar", 0, tokens, time.monotonic()))
                socket_out.send(random.randbytes(99), 1)
        finally:
            socket_out.close()

    def leave(self) -> None:
        """Eight clients that vanish in the middle of their streams."""
        body = asking(self._clip.video_url, "Who left?", max_tokens=200, stream=True)
        for _ in range(8):
            with (
                httpx.Client(base_url=self._server.url, timeout=60, trust_env=False) as client,
                client.stream("POST", CHAT, json=body) as reply,
            ):
                next(reply.iter_bytes(), b"")

    def half_open(self) -> None:
        """A thousand connections that say nothing, for ten seconds."""
        opened = []
        for _ in range(1000):
            opened.append(socket.create_connection(("127.0.0.1", self._server.port), 10))
            opened[-1].sendall(b"POST /v1/chat")
        threading.Timer(10.0, lambda: [one.close() for one in opened]).start()


def expected_answers(server: Server, clips: list[Clip], most: int) -> dict[tuple[str, str], str]:
    """What vLLM alone says to everything that will be asked."""
    client, found = server.client(), {}
    for clip, question in itertools.product(clips, QUESTIONS):
        body = asking(clip.video_url, question, max_tokens=most)
        answer = client.post(CHAT, json=body).raise_for_status().json()
        found[clip.name, question] = answer["choices"][0]["message"]["content"]
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0, help="with faults")
    parser.add_argument("--compare-minutes", type=float, help="without, each; a fifth if not said")
    parser.add_argument("--fault-every", type=float, default=20.0, help="seconds")
    parser.add_argument("--tokens", type=int, default=48)
    arguments = parser.parse_args()
    compared_s = 60 * (arguments.compare_minutes or arguments.minutes / 5)

    with ground(arguments) as here:
        clips = here.listed()
        with running(here.start_plain(), "/health") as plain:
            expected = expected_answers(plain, clips, arguments.tokens)
            shape = (clips, expected, arguments.tokens, arguments.streams)
            bare = Load(*shape, compared_s, headstart=False).run(plain, None, 1.0)
        crowd = {"max_requests": 256, "max_tenant_requests": 256}
        settings = {"server": {"log": "/dev/full"}, "limits": crowd}
        with running(here.start_ours(**settings)) as ours:
            client = ours.client()
            if here.drafter is not None:
                ours.wait_until(
                    lambda: client.get("/ready").json()["drafter"] == "up", "the drafter up", 600
                )
            quiet = Load(*shape, compared_s, headstart=True).run(ours, None, 1.0)
            faulty = Load(*shape, 60 * arguments.minutes, headstart=True, previews=True).run(
                ours, Faults(ours, clips[0]), arguments.fault_every
            )
            ready = client.get("/ready").json()

    runs = {"vLLM's server": bare, "headstart serve": quiet, "with faults": faulty}
    table = Table("", *runs)
    figures = {name: tally.figures() for name, tally in runs.items()}
    for row in next(iter(figures.values())):
        table.add_row(row, *(str(found.get(row, "")) for found in figures.values()))
    console = Console()
    console.print(table)
    for line in [*faulty.lost[:5], *faulty.wrong[:5], *quiet.lost[:5], *quiet.wrong[:5]]:
        console.print(line, markup=False)
    keep("serve_load", arguments, {"streams": arguments.streams, "ready": ready, **figures})


if __name__ == "__main__":
    main()
