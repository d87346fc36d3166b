"""Valid requests, and real files damaged inside, against a real server that is watched.

    python -m benchmarks.serve_fuzz_valid --tiny --requests 20000 --files 100000

An attacker with a key sends bodies that our own schema takes, bodies that vLLM's own schema takes,
both with files of every format in them; and files of every container, whole at first, then damaged
in their bytes, lengths, order and dimensions, as videos, pictures, events and uploads. Meanwhile
another tenant asks an ordinary question all the time. Its times are compared with those beside the
same load of whole files, by the same number of clients, right before.

Looked for: a 5xx, a path or a key in an answer, a lost connection, another process in the engine's
place, a port, memory. Prints what was found, then one line of JSON, which is also kept in
benchmarks/results, also of a run that was stopped; exits with 1 if anything was found.
"""

import argparse
import contextlib
import itertools
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from benchmarks.attacker import Attacker, Shot
from benchmarks.sandbox_trace import Traced, traced
from benchmarks.serve_fuzz import judge
from benchmarks.serving import Ground, Server, add_arguments, ground, keep, running
from benchmarks.watchers import Waits, Watcher, neighbour
from tests.serve.servers import CHAT, UPLOADS, asking

CLIENTS = 8
CALM_S = 120.0
ALONE_S = 20.0
TRACED_S = 120.0
PROGRESS_S = 10.0
PATIENCE_S = 120.0
LOG_LINES = 200
MOST_SLOW = 10
KEYS = ("key-attacker", "key-neighbour", "key-operator")
# So that nobody is sent away for asking too often: the load is what the clients can make of it.
UNLIMITED = {
    "requests_per_minute": 10_000_000,
    "tenant_requests_per_minute": 10_000_000,
    "tokens_per_minute": 10_000_000_000,
    "tenant_tokens_per_minute": 10_000_000_000,
}


@dataclass
class Tally:
    """What was sent, and what came back. Its methods may be called from any thread."""

    requests: int = 0
    files: int = 0
    files_in_requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, shot: Shot, reply: httpx.Response) -> None:
        """An answer, how long it took, and what is wrong with it."""
        took_s = reply.elapsed.total_seconds()
        sent = {"url": shot.path, "content": str(shot.body).encode()}
        wrong = judge(reply, sent)
        for key in KEYS:
            if key in reply.text:
                wrong = f"it says {key!r}: {reply.text[:300]}"
        with self._lock:
            self.statuses[reply.status_code] += 1
            slow = (round(took_s, 1), f"{shot.told()[:200]}: {_reason(reply)}")
            self.slowest = sorted([*self.slowest, slow], reverse=True)[:MOST_SLOW]
            if reply.status_code >= 400:
                self.refusals[_reason(reply)] += 1
            if wrong is not None:
                self.found.setdefault(wrong[:80], f"{wrong}\n    {shot.told()}")

    def lost(self, shot: Shot, error: Exception) -> None:
        """No answer."""
        with self._lock:
            self.found.setdefault(f"{error!r}"[:80], f"{error!r}\n    {shot.told()}")

    def count(self, shot: Shot, is_file: bool) -> None:
        """One more was sent."""
        with self._lock:
            if is_file:
                self.files += len(shot.files)
                self.formats.update(file.format for file in shot.files)
            else:
                # Whether files are looked at depends on the rest of the request.
                self.requests += 1
                self.files_in_requests += len(shot.files)

    def told(self) -> dict[str, Any]:
        """For a result."""
        return {
            "requests": self.requests,
            "files": self.files,
            "files_in_requests": self.files_in_requests,
            "statuses": dict(sorted(self.statuses.items())),
            "files_by_format": dict(sorted(self.formats.items())),
            "commonest_refusals": dict(self.refusals.most_common(25)),
            "slowest": self.slowest,
            "found": len(self.found),
            "findings": list(self.found)[:20],
        }


def _reason(reply: httpx.Response) -> str:
    """What the answer says is wrong, without the numbers and names in it."""
    try:
        message = str(reply.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = reply.text
    return f"{reply.status_code} {message[:60]}"


class Load:
    """Clients of the attacker's, each of which sends as soon as it was answered."""

    def __init__(self, server: Server, seed: int, samples: Path | None, damaged: bool) -> None:
        self.tally = Tally()
        self._server = server
        self._stop = threading.Event()
        self._most_requests = self._most_files = sys.maxsize
        self._threads = [
            threading.Thread(target=self._run, args=(seed * 1000 + number, samples, damaged))
            for number in range(CLIENTS)
        ]

    def run(self, num_requests: int, num_files: int, seconds: float) -> bool:
        """Until so much was sent, or so long; whether all was."""
        self._most_requests, self._most_files = num_requests, num_files
        end_s = time.monotonic() + seconds
        for thread in self._threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in self._threads):
                self._tell(end_s)
                if time.monotonic() > end_s or self._server.process.poll() is not None:
                    break
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()
        return self.tally.requests >= num_requests and self.tally.files >= num_files

    def _tell(self, end_s: float) -> None:
        told_s = min(end_s, time.monotonic() + PROGRESS_S)
        while time.monotonic() < told_s and any(thread.is_alive() for thread in self._threads):
            time.sleep(0.1)
        tally = self.tally
        said = f"{tally.requests} requests, {tally.files} files, {dict(tally.statuses)}"
        print(f"{said}, {len(tally.found)} found", file=sys.stderr, flush=True)

    def _run(self, seed: int, samples: Path | None, damaged: bool) -> None:
        attacker, tally = Attacker(seed, samples, damaged), self.tally
        chance = random.Random(seed)
        with httpx.Client(
            base_url=self._server.url,
            timeout=PATIENCE_S,
            trust_env=False,
            headers={"Authorization": f"Bearer {KEYS[0]}"},
        ) as client:
            while not self._stop.is_set():
                requests_left = max(0, self._most_requests - tally.requests)
                files_left = max(0, self._most_files - tally.files)
                if not requests_left and not files_left:
                    return
                # In the proportion of what is left of each.
                is_file = chance.random() * (requests_left + files_left) < files_left
                shot = attacker.file() if is_file else attacker.request()
                tally.count(shot, is_file)
                self._send(client, shot)

    def _send(self, client: httpx.Client, shot: Shot) -> None:
        try:
            if shot.path != UPLOADS:
                self.tally.note(shot, client.post(shot.path, json=shot.body))
                return
            kept = client.post(UPLOADS, content=shot.content, params=shot.query)
            self.tally.note(shot, kept)
            if kept.status_code == 201:
                where = kept.headers["location"]
                self.tally.note(shot, client.get(where))
                client.delete(where)
        except (httpx.HTTPError, ValueError) as error:
            self.tally.lost(shot, error)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A signal ends the load, and what was found so far is kept."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except KeyboardInterrupt:
        print("stopped; what was found so far is kept", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fuzz(server: Server, here: Ground, arguments: argparse.Namespace) -> dict[str, Any]:
    """Alone, beside an ordinary load, beside the fuzz: what was seen."""
    client = server.client(KEYS[1])
    question = asking(sorted(here.clips.glob("*.mp4"))[0], "What is happening?", max_tokens=8)
    # Its engine opens ports of its own while it starts.
    server.wait_until(lambda: client.get("/ready").json()["drafter"] == "up", "the drafter", 300)
    before = client.post(CHAT, json=question).json()["choices"]
    waits = {name: Waits() for name in ("alone", "beside ordinary load", "beside the fuzz")}
    seeds = itertools.count(arguments.seed)
    load = Load(server, next(seeds), arguments.samples, damaged=True)
    calm = Load(server, next(seeds), arguments.samples, damaged=False)
    complete, trace = False, Traced()
    with Watcher(server) as watcher, interruptible():
        with neighbour(client, question) as waits["alone"]:
            time.sleep(ALONE_S)
        with neighbour(client, question) as waits["beside ordinary load"]:
            calm.run(arguments.requests, arguments.files, arguments.calm_s)
        ordinary_mib = watcher.seen.tree_bytes >> 20
        with neighbour(client, question) as waits["beside the fuzz"]:
            complete = load.run(arguments.requests, arguments.files, arguments.minutes * 60)
        if arguments.strace and server.process.poll() is None:
            tracing = Load(server, next(seeds), arguments.samples, damaged=True)
            with traced(server, here.home / "strace.log") as trace:
                tracing.run(0, sys.maxsize, TRACED_S)
            load.tally.found.update(tracing.tally.found)
    load.tally.found.update(calm.tally.found)
    after = None
    if server.process.poll() is None:
        after = client.post(CHAT, json=question).json().get("choices")
    else:
        load.tally.found["the server ended"] = "the server ended"
    told = {name: one.told() for name, one in waits.items()}
    figures = {
        "complete": complete,
        "seed": arguments.seed,
        **load.tally.told(),
        "ordinary_files": calm.tally.files,
        "neighbour": told,
        "neighbour_p95_ratio": _ratio(told),
        **watcher.seen.told(),
        "peak_mib_beside_ordinary_load": ordinary_mib,
        "still_right": after == before,
    }
    if arguments.strace:
        figures["strace"] = trace.told()
    for text in load.tally.found.values():
        print(text)
    if load.tally.found:
        lines = server.log.read_text(errors="replace").splitlines()
        wrong = [line for line in lines if "ERROR" in line or '"trace"' in line]
        print(*wrong[-LOG_LINES:], sep="\n")
    return figures


def _ratio(told: dict[str, dict[str, Any]]) -> float | None:
    ordinary, fuzzed = told["beside ordinary load"], told["beside the fuzz"]
    if "p95_ms" not in ordinary or "p95_ms" not in fuzzed:
        return None
    return round(fuzzed["p95_ms"] / ordinary["p95_ms"], 2)


def main() -> None:
    """Send and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    parser.add_argument("--calm-s", type=float, default=CALM_S, help="of ordinary load before")
    parser.add_argument("--samples", type=Path, help="recordings and videos to damage too")
    parser.add_argument("--strace", action="store_true", help="trace the sandbox for two minutes")
    arguments = parser.parse_args()
    attacker, other, operator = ([key] for key in KEYS)
    with ground(arguments) as here:
        tables: dict[str, dict[str, Any]] = {
            "tenants": {"attacker": attacker, "neighbour": other},
            "operators": {"operator": operator},
            "limits": UNLIMITED,
        }
        with running(here.start_ours(**tables)) as server:
            figures = fuzz(server, here, arguments)
    keep("serve_fuzz_valid", arguments, figures)
    strace = figures.get("strace", {})
    bad = figures["found"] or figures["ports"] or figures["engine_changed"]
    if bad or strace.get("calls_that_got_through") or not figures["still_right"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
