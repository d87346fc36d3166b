"""Many streams on one server for minutes, with faults: is an answer lost, wrong or slower?

    python -m benchmarks.serve_load --streams 16 --minutes 10 --fault-every 20

Each stream follows a drive from its own starting second, asks one of four questions about each
second, half of them streamed, and compares every answer with the one that vLLM's plain server gave
before. It sends the next request as soon as it has an answer, so the server is never idle. First
the load runs without faults and without previews on one server after the other, each with both
cores: vLLM's, ours with memory alone, ours with the drafter. Then it runs with faults, and with
previews in the streamed half. The access log's disk is full from the first line on. Prints a table,
then one line of JSON, which is also kept in benchmarks/results.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import psutil
import zmq
from benchmarks.serving import (
    QUESTIONS,
    Clip,
    Server,
    add_arguments,
    keep,
    running,
    workspace,
)
from rich.console import Console
from rich.table import Table
from tests.serve.servers import asking, chunks_of, content_of, with_events

from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import DraftChannel, receive, send
from headstart.speculation.draft import Draft

CHAT = "/v1/chat/completions"
NUM_CLIPS = 160
DRAFTER = "headstart.engine.drafter.process"
LYING_S = 6.0  # less than the next drafter takes to start


@dataclass(frozen=True)
class Rss:
    """Resident memory at a moment; without the drafter, which faults restart."""

    at_s: float
    server_mib: float
    engine_mib: float

    @classmethod
    def of(cls, server: Server, at_s: float) -> "Rss":
        """Measure it now."""
        found = [0.0, 0.0]
        with contextlib.suppress(psutil.Error):
            found[0] = psutil.Process(server.process.pid).memory_info().rss / 2**20
            for child in server.children():
                with contextlib.suppress(psutil.Error):
                    if DRAFTER not in child.cmdline():
                        found[1] += child.memory_info().rss / 2**20
        return cls(at_s, *found)


@dataclass
class Tally:
    """The results of a run. Many threads append to its lists, which Python allows."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    told_to_wait: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    rss: list["Rss"] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    elapsed_s: float = 0.0

    def figures(self) -> dict[str, Any]:
        """For people and for JSON."""
        ordered = sorted(self.seconds)

        def quantile(share: float) -> float:
            return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 1)

        minutes = {int(one.at_s // 60): one for one in self.rss}
        return {
            "answers": len(ordered),
            "lost": len(self.lost),
            "wrong": len(self.wrong),
            "told_to_wait": len(self.told_to_wait),
            "answers_per_s": round(len(ordered) / max(self.elapsed_s, 1e-9), 2),
            **({f"p{n}_ms": quantile(n / 100) for n in (50, 95, 99)} if ordered else {}),
            "accepted_share": round(sum(self.accepted) / max(1, sum(self.tokens)), 3),
            "server_mib_by_minute": [round(one.server_mib) for one in minutes.values()],
            "engine_mib_by_minute": [round(one.engine_mib) for one in minutes.values()],
            "faults": dict(self.faults),
        }


@dataclass(frozen=True)
class Load:
    """Streams that send requests and compare the answers."""

    clips: list[Clip]
    expected: dict[tuple[str, str], str]
    max_tokens: int
    streams: int
    seconds: float
    headstart: bool
    previews: bool = False

    def run(self, server: Server, fault: Callable[[int], str] | None, every_s: float) -> Tally:
        """Send requests until the time is over, and wait for the last answers."""
        tally, began_s = Tally(), time.monotonic()
        stop_s = began_s + self.seconds
        threads = [
            threading.Thread(target=self._stream, args=(server, number, stop_s, tally), daemon=True)
            for number in range(self.streams)
        ]
        for thread in threads:
            thread.start()
        next_fault_s, number = began_s + every_s, 0
        while time.monotonic() < stop_s and server.process.poll() is None:
            tally.rss.append(Rss.of(server, time.monotonic() - began_s))
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
        first = number * len(self.clips) // self.streams
        drive = itertools.cycle(self.clips[first:] + self.clips[:first])
        with httpx.Client(base_url=server.url, timeout=300, trust_env=False) as client:
            while time.monotonic() < stop_s:
                clip, question = next(drive), chance.choice(QUESTIONS)
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


class Faults:
    """Causes one fault after the other, in a cycle."""

    def __init__(self, server: Server, clip: Clip) -> None:
        self._server = server
        self._clip = clip
        self._kinds = itertools.cycle(
            [
                self.drafter_killed,
                self.drafter_stopped,
                self.drafter_lying,
                self.clients_leaving,
                self.half_open,
            ]
        )
        self.num_lies = 0

    def __call__(self, number: int) -> str:
        """Cause the next fault; returns its name."""
        kind = next(self._kinds)
        with contextlib.suppress(psutil.Error, OSError, httpx.HTTPError):
            kind()
        return kind.__name__

    def _drafter(self) -> psutil.Process | None:
        for child in self._server.children():
            with contextlib.suppress(psutil.Error):
                if DRAFTER in child.cmdline():
                    return child
        return None

    def drafter_killed(self) -> None:
        """Kill the drafter; the server starts it again."""
        if drafter := self._drafter():
            drafter.kill()

    def drafter_stopped(self) -> None:
        """Stop the drafter for three seconds."""
        if drafter := self._drafter():
            drafter.send_signal(signal.SIGSTOP)
            threading.Timer(3.0, drafter.send_signal, [signal.SIGCONT]).start()

    def drafter_lying(self) -> None:
        """Replace the drafter by this process, which sends random drafts."""
        if (drafter := self._drafter()) is None:
            return
        spec = next(word for word in drafter.cmdline() if word.startswith("{"))
        channel = DraftChannel(json.loads(spec)["channel"])
        drafter.kill()
        drafter.wait(10)
        asks, drafts, previews = channel.asks_in(), channel.drafts_out(), channel.previews_out()
        try:
            self._server.wait_until(lambda: self._drafter() is not None, "the next drafter", 30)
            if successor := self._drafter():
                send(previews, messages.Ready(successor.pid))
            until_s = time.monotonic() + LYING_S
            while time.monotonic() < until_s:
                data = receive(asks, 0.1)
                asked = messages.read_by_drafter(data) if data is not None else None
                if isinstance(asked, messages.Ask):
                    self._lie(asked.request, drafts)
        finally:
            for socket_of_ours in (asks, drafts, previews):
                socket_of_ours.close()

    def _lie(self, request: str, drafts: "zmq.Socket[bytes]") -> None:
        for start in (0, 0, 7, 10**6):
            tokens = tuple(random.randrange(-9, 40_000) for _ in range(64))
            draft = Draft(tokens, "eventgpt", time.monotonic(), start)
            self.num_lies += send(drafts, messages.Drafted(request, draft))
        with contextlib.suppress(zmq.Again):
            drafts.send(random.randbytes(99), zmq.NOBLOCK)

    def clients_leaving(self) -> None:
        """Eight clients disconnect in the middle of their streams."""
        body = asking(self._clip.video_url, "Who left?", max_tokens=200, stream=True)
        for _ in range(8):
            with (
                httpx.Client(base_url=self._server.url, timeout=60, trust_env=False) as client,
                client.stream("POST", CHAT, json=body) as reply,
            ):
                next(reply.iter_bytes(), b"")

    def half_open(self) -> None:
        """Open a thousand connections that send nothing more, for ten seconds."""
        opened = []
        for _ in range(1000):
            opened.append(socket.create_connection(("127.0.0.1", self._server.port), 10))
            opened[-1].sendall(b"POST /v1/chat")
        threading.Timer(10.0, lambda: [one.close() for one in opened]).start()


def expected_answers(
    server: Server, clips: list[Clip], most: int, num_at_once: int
) -> dict[tuple[str, str], str]:
    """vLLM's own answers to every question about every clip."""

    def ask(asked: tuple[Clip, str]) -> str:
        body = asking(asked[0].video_url, asked[1], max_tokens=most)
        answer = client.post(CHAT, json=body).raise_for_status().json()
        return str(answer["choices"][0]["message"]["content"])

    everything = list(itertools.product(clips, QUESTIONS))
    with server.client() as client, ThreadPoolExecutor(num_at_once) as threads:
        answers = list(threads.map(ask, everything))
    return {
        (clip.name, question): answer
        for (clip, question), answer in zip(everything, answers, strict=True)
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0, help="with faults")
    parser.add_argument(
        "--compare-minutes",
        type=float,
        help="without faults, each server; a fifth of --minutes if left out",
    )
    parser.add_argument("--fault-every", type=float, default=20.0, help="seconds")
    parser.add_argument("--tokens", type=int, default=48)
    arguments = parser.parse_args()
    console = Console()

    def say(what: str) -> None:
        console.print(time.strftime("%H:%M:%S"), what)

    compared_s = 60 * (arguments.compare_minutes or arguments.minutes / 5)

    with workspace(arguments, NUM_CLIPS) as here:
        clips = here.listed()
        with running(here.start_plain(), "/health") as plain:
            say("vLLM's server answers everything once")
            expected = expected_answers(plain, clips, arguments.tokens, arguments.streams)
            shape = (clips, expected, arguments.tokens, arguments.streams)
            say("vLLM's server under load")
            bare = Load(*shape, compared_s, headstart=False).run(plain, None, 1.0)
        limits = {"max_requests": 256, "max_tenant_requests": 256}
        settings = {"server": {"log": "/dev/full"}, "limits": limits}
        with running(replace(here, drafter=None).start_ours(**settings)) as ours:
            say("headstart serve, memory alone")
            remembering = Load(*shape, compared_s, headstart=True).run(ours, None, 1.0)
        with running(here.start_ours(**settings)) as ours:
            client = ours.client()
            if here.drafter is not None:
                ours.wait_until(
                    lambda: client.get("/ready").json()["drafter"] == "up", "the drafter up", 600
                )
            say("headstart serve, with its drafter")
            quiet = Load(*shape, compared_s, headstart=True).run(ours, None, 1.0)
            say("headstart serve, with faults")
            faults = Faults(ours, clips[0])
            faulty = Load(*shape, 60 * arguments.minutes, headstart=True, previews=True).run(
                ours, faults, arguments.fault_every
            )
            ready = client.get("/ready").json()

    runs = {
        "vLLM's server": bare,
        "memory alone": remembering,
        "with the drafter": quiet,
        "with faults": faulty,
    }
    table = Table("", *runs)
    figures = {name: tally.figures() for name, tally in runs.items()}
    for row in next(iter(figures.values())):
        table.add_row(row, *(str(found.get(row, "")) for found in figures.values()))
    console.print(table)
    for tally in runs.values():
        for line in [*tally.lost[:5], *tally.wrong[:5]]:
            console.print(line, markup=False)
    run = {"streams": arguments.streams, "ready": ready, "lies": faults.num_lies}
    keep("serve_load", arguments, {**run, **figures})


if __name__ == "__main__":
    main()
