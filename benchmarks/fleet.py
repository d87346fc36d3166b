"""Cameras on several servers behind a router, while one server is killed and another one drained.

    apt-get install haproxy && python -m benchmarks.fleet --tiny --streams 48 --seconds 240

Every stream asks about a window each few seconds, through the router, and asks again until it has
an answer: a window is answered once, or lost. A third into the run a server is killed, and started
again at once; at two thirds another one is drained. The servers share a store of memories, unless
--no-store is given. Before all that, some streams' memories are handed from one server to another
over HTTP. Prints a table, then one line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import httpx
from benchmarks.serving import QUESTIONS, Clip, Server, Workspace, add_arguments, keep, workspace
from rich.console import Console
from rich.table import Table
from tests.serve.memory.redis_server import running_redis
from tests.serve.servers import asking, free_port, from_memory, serve_command, start, toml

CHAT = "/v1/chat/completions"
MEMORY = "/v1/headstart/memory"
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIG = """
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 300s
frontend streams
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    option httpchk GET /ready
    option redispatch
    default-server check inter 1s fall 1 rise 1"""
HASHED = "    balance hdr(X-Session-ID)\n    hash-type consistent"
PAUSE_S = 0.5  # before a stream asks again
LATEST_S = 60.0  # after this time a window is lost
PHASES = ("before", "after the kill", "after the drain")


@dataclass
class Told:
    """What became of the windows of one phase."""

    windows: int = 0
    answered: int = 0
    wrong: int = 0
    lost: int = 0
    asked_again: Counter[str] = field(default_factory=Counter)
    drafted: int = 0
    accepted: int = 0
    helped: int = 0
    """Answers of which memory drafted at least one word rightly."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    waits_s: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """As they are kept."""
        return {
            "windows": self.windows,
            "answered": self.answered,
            "wrong": self.wrong,
            "lost": self.lost,
            "asked_again": dict(self.asked_again),
            "answers_memory_helped": round(self.helped / max(self.answered, 1), 3),
            "memory_accepted_tokens_an_answer": round(self.accepted / max(self.answered, 1), 2),
            "memory_drafted_tokens_an_answer": round(self.drafted / max(self.answered, 1), 2),
            "cached_prompt_share": round(self.cached_tokens / max(self.prompt_tokens, 1), 3),
            "median_wait_s": round(median(self.waits_s), 3) if self.waits_s else None,
        }


class Fleet:
    """Servers on fixed ports, with one store, behind a router."""

    def __init__(self, here: Workspace, num_servers: int, store: str | None, policy: str) -> None:
        self._here, self._store = here, store
        self._policy = policy
        (here.home / "memory.key").write_text("a key of this benchmark alone")
        self.ports = [free_port() for _ in range(num_servers)]
        self.servers = [self._start(number) for number in range(num_servers)]
        self.router_port = free_port()
        self._router: subprocess.Popen[bytes] | None = None

    def _start(self, number: int) -> Server:
        port, home = self.ports[number], self._here.home / f"server-{number}"
        home.mkdir(exist_ok=True)
        memory: dict[str, Any] = {"key_file": self._here.home / "memory.key", "save_every_s": 5.0}
        if self._store is not None:
            memory["store"] = self._store
        tables = {
            "server": {
                "target": self._here.target,
                "port": port,
                "open": True,
                "warm_memory": False,  # so that what a stream knows is what it brought along
            },
            "memory": memory,
            "vllm": {
                "served_model_name": "target",
                "enforce_eager": True,
                "block_size": 32,
                "dtype": self._here.dtype,
                "kv_cache_memory_bytes": 1 << 29,
                "enable_prompt_tokens_details": True,
            },
        }
        config = home / "headstart.toml"
        config.write_text(toml(tables))
        return start(serve_command("--config", str(config)), port, home / "server.log")

    def wait_ready(self) -> None:
        """Until every server is, and the router."""
        for server in self.servers:
            server.wait_ready("/ready")
        config = self._here.home / "haproxy.cfg"
        listed = [f"    server s{port} 127.0.0.1:{port}" for port in self.ports]
        balance = HASHED if self._policy == "stream" else "    balance roundrobin"
        config.write_text("\n".join([CONFIG.format(port=self.router_port), balance, *listed, ""]))
        with (self._here.home / "router.log").open("wb") as log:
            self._router = subprocess.Popen(
                [str(HAPROXY), "-f", str(config)], stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + 60
        with httpx.Client(trust_env=False) as client:
            while time.monotonic() < deadline:
                with contextlib.suppress(httpx.TransportError):
                    if client.get(f"{self.router}/v1/models").status_code == 200:
                        return
                time.sleep(0.2)
        raise SystemExit((self._here.home / "router.log").read_text()[-2000:])

    @property
    def router(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.router_port}"

    def kill(self, number: int) -> None:
        """Kill a server with all its processes, and start it again."""
        server = self.servers[number]
        for process in [*server.children(), server.process]:
            with contextlib.suppress(Exception):
                process.kill()
        server.process.wait()
        self.servers[number] = self._start(number)

    def drain(self, number: int) -> None:
        """Tell a server to end, which it does when it has answered."""
        self.servers[number].process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End everything."""
        if self._router is not None:
            self._router.terminate()
            self._router.wait()
        for server in self.servers:
            server.stop()


class Stream(threading.Thread):
    """One camera: a window every few seconds, each answered once or lost."""

    def __init__(self, number: int, fleet: Fleet, body: dict[str, Any], expected: str) -> None:
        super().__init__(name=f"camera-{number}", daemon=True)
        self._fleet, self._body, self._expected = fleet, body, expected
        self.told = {phase: Told() for phase in PHASES}
        self.phase = PHASES[0]
        self.stopping = threading.Event()
        self.period_s, self.first_s = 4.0, 0.0

    def run(self) -> None:
        """Until it is told to stop."""
        headers = {"X-Session-ID": self.name}
        with httpx.Client(trust_env=False, headers=headers, timeout=LATEST_S) as client:
            self.stopping.wait(self.first_s)
            due_s = time.monotonic()
            while not self.stopping.is_set():
                self._window(client)
                due_s += self.period_s
                self.stopping.wait(max(0.0, due_s - time.monotonic()))

    def _window(self, client: httpx.Client) -> None:
        told, began_s = self.told[self.phase], time.monotonic()
        told.windows += 1
        while time.monotonic() - began_s < LATEST_S:
            try:
                reply = client.post(f"{self._fleet.router}{CHAT}", json=self._body)
                how = str(reply.status_code)
            except httpx.TransportError as error:
                reply, how = None, type(error).__name__
            if reply is not None and reply.status_code == 200:
                self._note(told, reply.json(), time.monotonic() - began_s)
                return
            told.asked_again[how] += 1
            time.sleep(PAUSE_S)
        told.lost += 1

    def _note(self, told: Told, answer: dict[str, Any], wait_s: float) -> None:
        drafted, accepted = from_memory(answer)
        told.answered += 1
        told.wrong += answer["choices"][0]["message"]["content"] != self._expected
        told.drafted += drafted
        told.accepted += accepted
        told.helped += accepted > 0
        told.prompt_tokens += answer["usage"]["prompt_tokens"]
        told.cached_tokens += answer["headstart"]["cached_tokens"]
        told.waits_s.append(wait_s)


def summed(streams: list[Stream], phase: str) -> Told:
    """Of all streams."""
    total = Told()
    for stream in streams:
        told = stream.told[phase]
        for name, value in vars(told).items():
            setattr(total, name, getattr(total, name) + value)
    return total


def run(fleet: Fleet, clips: list[Clip], arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask, kill, drain; what became of all windows, and how many streams have one server."""
    bodies, expected = [], {}
    with httpx.Client(trust_env=False, timeout=300) as client:
        for number in range(arguments.streams):
            clip, question = clips[number % len(clips)], QUESTIONS[number % len(QUESTIONS)]
            body = asking(clip.video_url, question, max_tokens=32)
            bodies.append({**body, "headstart": {}})
            if (clip.name, question) not in expected:
                # Without a stream: nothing is remembered of it, and nothing is drafted for it.
                reply = client.post(f"{fleet.servers[0].url}{CHAT}", json=body).json()
                expected[clip.name, question] = reply["choices"][0]["message"]["content"]
    texts = [
        expected[clips[number % len(clips)].name, QUESTIONS[number % len(QUESTIONS)]]
        for number in range(arguments.streams)
    ]
    streams = [
        Stream(number, fleet, bodies[number], texts[number]) for number in range(arguments.streams)
    ]
    for stream in streams:
        stream.period_s = arguments.period_s
        stream.first_s = arguments.period_s * int(stream.name.split("-")[1]) / arguments.streams
        stream.start()
    part_s = arguments.seconds / 3
    time.sleep(part_s)
    homes = homes_by_server(fleet)
    begin_phase(streams, PHASES[1])
    fleet.kill(0)
    time.sleep(part_s)
    begin_phase(streams, PHASES[2])
    fleet.drain(1)
    time.sleep(part_s)
    for stream in streams:
        stream.stopping.set()
    for stream in streams:
        stream.join(2 * LATEST_S)
    return {
        "phases": {phase: summed(streams, phase).figures() for phase in PHASES},
        "streams_at_one_server": sum(
            count == 1 for count in Counter(name for names in homes for name in names).values()
        ),
        "streams_a_server": [len(names) for names in homes],
    }


def begin_phase(streams: list[Stream], phase: str) -> None:
    """Windows that begin from now on are counted there."""
    for stream in streams:
        stream.phase = phase


def homes_by_server(fleet: Fleet) -> list[list[str]]:
    """Of each server that answers, the streams it remembers."""
    found = []
    for server in fleet.servers:
        with contextlib.suppress(httpx.TransportError):
            rows = server.client().get(MEMORY).json()["data"]
            found.append([row["stream"] for row in rows if row["answers"]])
    return found


def hand_over(fleet: Fleet, clips: list[Clip], num_streams: int) -> dict[str, Any]:
    """Take streams from one server to another over HTTP, and ask there."""
    old, new = (fleet.servers[number].client() for number in (0, 2))
    names = [f"travelling-{number}" for number in range(num_streams)]
    bodies = [
        {
            **asking(clips[n % len(clips)].video_url, QUESTIONS[n % 4], max_tokens=32),
            "headstart": {},
        }
        for n in range(num_streams)
    ]

    def ask(client: httpx.Client, number: int) -> dict[str, Any]:
        headers = {"X-Session-ID": names[number]}
        answer: dict[str, Any] = client.post(CHAT, json=bodies[number], headers=headers).json()
        return answer

    before, sizes, times_ms, after, cold, same = [], [], [], [], [], 0
    for number in range(num_streams):
        for _ in range(3):
            last = ask(old, number)
        before.append(from_memory(last)[1])
        cold.append(from_memory(ask(new, number))[1] if number % 4 == 0 else 0)
        if number % 4 == 0:
            new.delete(MEMORY, params={"stream": names[number]})
        began_s = time.monotonic()
        sealed = old.get(f"{MEMORY}/export", params={"stream": names[number]}).content
        taken = new.post(f"{MEMORY}/import", params={"stream": names[number]}, content=sealed)
        times_ms.append((time.monotonic() - began_s) * 1e3)
        taken.raise_for_status()
        sizes.append(len(sealed))
        first = ask(new, number)
        after.append(from_memory(first)[1])
        same += first["choices"] == last["choices"]
    return {
        "streams": num_streams,
        "bytes_a_stream": round(sum(sizes) / num_streams),
        "median_ms_a_stream": round(median(times_ms), 1),
        "all_ms": round(sum(times_ms), 1),
        "accepted_tokens_last_answer_before": round(sum(before) / num_streams, 2),
        "accepted_tokens_first_answer_after": round(sum(after) / num_streams, 2),
        "accepted_tokens_first_answer_cold": round(sum(cold) / len(cold[::4]), 2),
        "same_text": same,
    }


def measured(fleet: Fleet, clips: list[Clip], arguments: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    handed = hand_over(fleet, clips, arguments.travellers)
    return {**run(fleet, clips, arguments), "hand_over": handed}


@contextlib.contextmanager
def store_of(arguments: argparse.Namespace) -> Iterator[str | None]:
    """A Redis of this run's own."""
    if arguments.no_store:
        yield None
        return
    with running_redis() as address:
        yield address


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--streams", type=int, default=48)
    parser.add_argument("--travellers", type=int, default=48, help="streams to hand over")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--period-s", type=float, default=6.0)
    parser.add_argument("--policy", choices=("stream", "round-robin"), default="stream")
    parser.add_argument("--no-store", action="store_true")
    parser.add_argument("--name", default="fleet", help="of the kept result")
    arguments = parser.parse_args()
    if HAPROXY is None:
        sys.exit("HAProxy is not installed: apt-get install haproxy")
    with workspace(arguments) as made, store_of(arguments) as store:
        fleet = Fleet(replace(made, drafter=None), arguments.servers, store, arguments.policy)
        try:
            fleet.wait_ready()
            figures = measured(fleet, made.listed(), arguments)
        finally:
            fleet.close()
    table = Table("", *PHASES)
    for name in figures["phases"][PHASES[0]]:
        table.add_row(name, *(str(figures["phases"][phase][name]) for phase in PHASES))
    Console(stderr=True).print(table)
    figures |= {"policy": arguments.policy, "store": not arguments.no_store}
    keep(arguments.name, arguments, figures)


if __name__ == "__main__":
    main()
