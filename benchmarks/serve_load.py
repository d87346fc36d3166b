"""Many streams on one server for minutes, with faults: is an answer lost, wrong or slower?

    python -m benchmarks.serve_load --streams 16 --minutes 10 --fault-every 20

Each stream follows a drive from its own starting second, asks one of four questions about each
second, half of them streamed, and compares every answer with the one that vLLM's plain server gave
before. It sends the next request as soon as it has an answer, so the server is never idle. First
the load runs without faults and without previews on one server after the other, each with both
cores: vLLM's, ours with memory alone, ours with the drafter. Then it runs with faults, and with
previews in the streamed half. The access log's disk is full from the first line on. Prints a table,
then one line of JSON, which is also kept in benchmarks/results.

With --open 0.5 0.85 each server then also gets requests that arrive by themselves, at these shares
of the answers a second that vLLM's server gave before, and a wait counts from the arrival. These
requests are of other cameras further along the drive, on a server that has seen its seconds before.
"""

import argparse
import contextlib
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.serve_faults import CHAT, DRAFTER, Faults
from headstart_research.bench.open_loop import Arrival, arrivals, ask_on_arrival
from rig.servers import asking, chunks_of, content_of, with_events
from rig.serving import (
    QUESTIONS,
    Clip,
    Server,
    add_arguments,
    keep,
    running,
    workspace,
)

NUM_CLIPS = 160
VLLM, MEMORY, DRAFTED, FAULTY = (
    "vLLM's server",
    "memory alone",
    "with the drafter",
    "with faults",
)


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

    @property
    def answers_per_s(self) -> float:
        """Over the whole run."""
        return len(self.seconds) / max(self.elapsed_s, 1e-9)

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
            "answers_per_s": round(self.answers_per_s, 2),
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
    place: int = 0
    """How many runs were on the server before: this one has other cameras."""

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

    def run_open(self, server: Server, rate: float) -> Tally:
        """Send requests at their own times, ``rate`` a second, and wait for the last answers."""
        tally, num_each = Tally(), max(1, round(rate * self.seconds / self.streams))
        asked = [
            list(itertools.islice(self._requests(number), num_each))
            for number in range(self.streams)
        ]
        unlimited = httpx.Limits(max_connections=None)
        with httpx.Client(
            base_url=server.url, timeout=300, trust_env=False, limits=unlimited
        ) as client:

            def ask(arrival: Arrival, arrived_s: float) -> None:
                body, name = asked[arrival.stream][arrival.index]
                self._ask(client, body, name, tally, arrived_s)

            began_s = time.monotonic()
            ask_on_arrival(arrivals(self.streams, num_each, rate=rate), ask)
            tally.elapsed_s = time.monotonic() - began_s
        return tally

    def _stream(self, server: Server, number: int, stop_s: float, tally: Tally) -> None:
        requests = self._requests(number)
        with httpx.Client(base_url=server.url, timeout=300, trust_env=False) as client:
            while time.monotonic() < stop_s:
                body, name = next(requests)
                time.sleep(self._ask(client, body, name, tally, time.monotonic()))

    def _requests(self, number: int) -> Iterator[tuple[Any, tuple[str, str]]]:
        """A stream's requests without end, and the clip and question that each is about."""
        camera = number + self.place * self.streams
        chance = random.Random(camera)
        first = (number * len(self.clips) // self.streams + 3 * self.place) % len(self.clips)
        for clip in itertools.cycle(self.clips[first:] + self.clips[:first]):
            question = chance.choice(QUESTIONS)
            body = asking(clip.video_url, question, max_tokens=self.max_tokens)
            body["stream"] = chance.random() < 0.5
            if self.headstart:
                previewed = self.previews and body["stream"]
                body["headstart"] = {"stream": f"camera-{camera}", "preview": previewed}
                if clip.events is not None:
                    body = with_events(body, url=clip.events.as_uri())
            yield body, (clip.name, question)

    def _ask(
        self, client: httpx.Client, body: Any, name: tuple[str, str], tally: Tally, began_s: float
    ) -> float:
        """Note the answer; returns for how many seconds the server tells the client to wait."""
        try:
            reply = client.post(CHAT, json=body)
        except httpx.TransportError as error:
            tally.lost.append(repr(error))
            return 0.0
        if reply.status_code == 429:
            tally.told_to_wait.append(1)
            return float(reply.headers["retry-after"])
        if reply.status_code != 200:
            tally.lost.append(f"{reply.status_code} {reply.text[:200]}")
            return 0.0
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
            return 0.0
        tally.seconds.append(time.monotonic() - began_s)
        if text != self.expected[name]:
            tally.wrong.append(f"{name}: {text!r}, not {self.expected[name]!r}")
        return 0.0


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
    parser.add_argument(
        "--open",
        type=float,
        nargs="*",
        default=[],
        help="also let requests arrive by themselves, at these shares of vLLM's answers a second",
    )
    arguments = parser.parse_args()
    console = Console()

    def say(what: str) -> None:
        console.print(time.strftime("%H:%M:%S"), what)

    compared_s = 60 * (arguments.compare_minutes or arguments.minutes / 5)
    runs: dict[str, Tally] = {}

    with workspace(arguments, NUM_CLIPS) as here:
        clips = here.listed()
        with running(here.start_plain(), "/health") as plain:
            say("vLLM's server answers everything once")
            expected = expected_answers(plain, clips, arguments.tokens, arguments.streams)
        shape = (clips, expected, arguments.tokens, arguments.streams)

        def compare(server: Server, label: str) -> None:
            """Measure a server without faults: in a closed loop, then at each open load."""
            load = Load(*shape, compared_s, headstart=label != VLLM)
            say(f"{label}, each camera asks again at once")
            runs[label] = load.run(server, None, 1.0)
            for place, share in enumerate(arguments.open, start=1):
                rate = share * runs[VLLM].answers_per_s
                say(f"{label}, {rate:.2f} questions a second")
                runs[f"{label} at {share:g}"] = replace(load, place=place).run_open(server, rate)

        # Started anew: the first one has answered about every clip by now, and ours about none.
        with running(here.start_plain(), "/health") as plain:
            compare(plain, VLLM)
        limits = {"max_requests": 256, "max_tenant_requests": 256}
        settings = {"server": {"log": "/dev/full"}, "limits": limits}
        with running(replace(here, drafter=None).start_ours(**settings)) as ours:
            compare(ours, MEMORY)
        with running(here.start_ours(**settings)) as ours:
            client = ours.client()
            if here.drafter is not None:
                ours.wait_until(
                    lambda: client.get("/ready").json()["drafter"] == "up", "the drafter up", 600
                )
            compare(ours, DRAFTED)
            say("headstart serve, with faults")
            faults = Faults(ours, clips[0])
            runs[FAULTY] = Load(*shape, 60 * arguments.minutes, headstart=True, previews=True).run(
                ours, faults, arguments.fault_every
            )
            ready = client.get("/ready").json()

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
