"""Valid requests and damaged files, sent to a real server while its processes are watched.

    python -m tests.soak.serve_fuzz_valid --tiny --requests 20000 --files 100000

An attacker with a key sends bodies that are valid by our own schema and bodies that are valid by
vLLM's, with files of every format in them; and files of every container, first whole, then damaged
in their bytes, lengths, order and dimensions, as videos, pictures, events and uploads. Meanwhile
another tenant keeps asking an ordinary question. Its times are compared with those measured right
before, beside the same number of clients that send whole files.

Findings are a 5xx, a path or a key in an answer, a lost connection, a restarted engine, a new port,
a crash. Prints them, then one line of JSON, which is also kept in benchmarks/results, even if the
run was interrupted; exits with 1 if there are any.
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

from rig.servers import CHAT, UPLOADS, asking
from rig.serving import Server, Workspace, add_arguments, keep, running, workspace
from rig.watchers import Waits, Watcher, neighbour
from tests.soak.attacker import Attack, Attacker
from tests.soak.sandbox_trace import Traced, traced
from tests.soak.serve_fuzz import judge

CLIENTS = 8
CALM_S = 120.0
ALONE_S = 20.0
TRACED_S = 120.0
PROGRESS_S = 10.0
PATIENCE_S = 120.0
LOG_LINES = 200
MOST_SLOW = 10
KEYS = ("key-attacker", "key-neighbour", "key-operator")
# Rate limits would bound the load; the clients shall.
UNLIMITED = {
    "requests_per_minute": 10_000_000,
    "tenant_requests_per_minute": 10_000_000,
    "tokens_per_minute": 10_000_000_000,
    "tenant_tokens_per_minute": 10_000_000_000,
}


@dataclass
class Tally:
    """Counts of what was sent and answered. Its methods may be called from any thread."""

    requests: int = 0
    files: int = 0
    files_in_requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, attack: Attack, reply: httpx.Response) -> None:
        """Note an answer, the time it took, and its fault if it has one."""
        took_s = reply.elapsed.total_seconds()
        sent = {"url": attack.path, "content": str(attack.body).encode()}
        wrong = judge(reply, sent)
        for key in KEYS:
            if key in reply.text:
                wrong = f"it says {key!r}: {reply.text[:300]}"
        with self._lock:
            self.statuses[reply.status_code] += 1
            slow = (round(took_s, 1), f"{attack.told()[:200]}: {_reason(reply)}")
            self.slowest = sorted([*self.slowest, slow], reverse=True)[:MOST_SLOW]
            if reply.status_code >= 400:
                self.refusals[_reason(reply)] += 1
            if wrong is not None:
                self.found.setdefault(wrong[:80], f"{wrong}\n    {attack.told()}")

    def lost(self, attack: Attack, error: Exception) -> None:
        """Note a request without an answer."""
        with self._lock:
            self.found.setdefault(f"{error!r}"[:80], f"{error!r}\n    {attack.told()}")

    def count(self, attack: Attack, is_file: bool) -> None:
        """Count one more request or file."""
        with self._lock:
            if is_file:
                self.files += len(attack.files)
                self.formats.update(file.format for file in attack.files)
            else:
                # The server reads the files only if the rest of the request is valid.
                self.requests += 1
                self.files_in_requests += len(attack.files)

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
    """The beginning of an error's message, to count equal reasons."""
    try:
        message = str(reply.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = reply.text
    return f"{reply.status_code} {message[:60]}"


class Load:
    """The attacker's clients, each of which sends the next request when it has an answer."""

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
        """Send so many requests and files, or until the time is over; whether all were sent."""
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
                # In proportion to what is left of each.
                is_file = chance.random() * (requests_left + files_left) < files_left
                attack = attacker.file() if is_file else attacker.request()
                tally.count(attack, is_file)
                self._send(client, attack)

    def _send(self, client: httpx.Client, attack: Attack) -> None:
        try:
            if attack.path != UPLOADS:
                self.tally.note(attack, client.post(attack.path, json=attack.body))
                return
            kept = client.post(UPLOADS, content=attack.content, params=attack.query)
            self.tally.note(attack, kept)
            if kept.status_code == 201:
                where = kept.headers["location"]
                self.tally.note(attack, client.get(where))
                client.delete(where)
        except (httpx.HTTPError, ValueError) as error:
            self.tally.lost(attack, error)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A signal ends the load and keeps the findings so far."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the findings so far are kept", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fuzz(server: Server, here: Workspace, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the other tenant alone, beside an ordinary load, and beside the fuzz."""
    client = server.client(KEYS[1])
    question = asking(sorted(here.clips.glob("*.mp4"))[0], "What is happening?", max_tokens=8)
    # The drafter's engine opens ports while it starts.
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
    with workspace(arguments) as here:
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
