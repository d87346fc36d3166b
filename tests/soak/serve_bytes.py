"""A client that speaks bytes, not messages: does anybody else wait, and does anything stay?

    headstart lab tiny build/tiny
    python -m tests.soak.serve_bytes build/tiny/target --minutes 60

A tenant asks `GET /v1/models` and an answer of 4 tokens, each twice a second, on new connections. A
block of some seconds beside an attack comes right after one without, so that both see the same
machine: `tests.soak.byte_attacks` has the attacks. Beside bytes, frames, control frames, drips,
memory routes and refused bodies the 95th percentile of both questions may be 2 times that of the
quiet blocks plus 50 ms. Beside work for the engine, as much as is let in, the first may be so too;
the second is compared with blocks in which a polite tenant has as much work in flight, and may be
1.5 times that. Afterwards the server's memory must be within 5 % of what it was.

Prints a table, then one line of JSON, which is also kept in benchmarks/results; exits with 1 if a
promise is broken. `--attacks` chooses some.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rig.leftovers import Footprint, leftovers
from rig.measurement import RESULTS, Measurement
from rig.server_memory import ServerMemory
from rig.servers import MODEL
from rig.serving import Server, Workspace, running
from tests.soak.byte_attacks import ATTACKS, WORKING

VICTIM, POLITE, OPERATOR = "key-victim", "key-polite", "key-operator"
AT_ONCE = 8
"""Requests in flight that a tenant may have here."""
NUM_STREAMS = 300
"""That the attacker's memory knows."""
EVERY_S = 0.5
GAP_S = 1.5
"""After an attack nobody is timed until what it left is over."""
MAX_RATIO, MORE_S, MAX_WORKING_RATIO = 2.0, 0.05, 1.5
MAX_MEMORY_RATIO = 1.05
MEMORY_PATIENCE_S = 120.0
SETTINGS: dict[str, dict[str, Any]] = {
    "tenants": {
        "victim": [VICTIM],
        "polite": [POLITE],
        # What one attack leaves in flight until its time is over would take the room of the next.
        **{name: [f"key-{name}"] for name in (*ATTACKS, *WORKING)},
    },
    "operators": {"operator": [OPERATOR]},
    "limits": {"max_tenant_requests": AT_ONCE, "live_resume_s": 1.0},
    "vllm": {"mm_processor_cache_gb": 0.0625},
}
KEYLESS = frozenset(
    (
        *("pipeline", "pipelined_pages", "pipelined_bodies", "unread", "headers", "address"),
        *("rubbish", "connections", "dripped_heads", "hammer", "handshakes"),
    )
)
QUESTIONS = ("models", "answer")


@dataclass
class Waits:
    """Of one kind of block: how long each question took, and what failed."""

    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {question: [] for question in QUESTIONS}
    )
    failed: Counter[str] = field(default_factory=Counter)
    loop_s: float = 0.0
    """Processor time of the server's event loop."""
    wall_s: float = 0.0

    def add(self, other: "Waits") -> None:
        for question in QUESTIONS:
            self.seconds[question] += other.seconds[question]
        self.failed += other.failed
        self.loop_s += other.loop_s
        self.wall_s += other.wall_s

    def p95_s(self, question: str) -> float:
        """Infinite where nothing came."""
        sorted_s = sorted(self.seconds[question])
        return sorted_s[min(len(sorted_s) - 1, int(0.95 * len(sorted_s)))] if sorted_s else 1e9

    def told(self) -> dict[str, Any]:
        """For a result."""
        told: dict[str, Any] = {}
        for question, waits in self.seconds.items():
            ms = sorted(round(1e3 * wait_s, 1) for wait_s in waits)
            if ms:
                at = {"p50": len(ms) // 2, "p95": min(len(ms) - 1, int(0.95 * len(ms)))}
                told[question] = {
                    "count": len(ms),
                    **{f"{name}_ms": ms[place] for name, place in at.items()},
                    "max_ms": ms[-1],
                }
        busy = round(self.loop_s / self.wall_s, 3) if self.wall_s else None
        return {**told, "failed": dict(self.failed), "loop_busy": busy}


@dataclass
class Pair:
    """The blocks without and with one attack."""

    quiet: Waits = field(default_factory=Waits)
    attacked: Waits = field(default_factory=Waits)
    done: Counter[str] = field(default_factory=Counter)
    done_politely: Counter[str] = field(default_factory=Counter)
    """What the polite tenant did in the blocks without."""
    loads: list[float] = field(default_factory=list)

    def line(self, name: str, elapsed_s: float) -> str:
        """How far it is."""
        p95s = (
            f" {question} {1e3 * self.quiet.p95_s(question):.0f} ->"
            f" {1e3 * self.attacked.p95_s(question):.0f} ms"
            for question in QUESTIONS
        )
        told = f"{dict(self.attacked.failed)} {dict(self.done)} load {self.loads[-1]}"
        return f"{elapsed_s / 60:.1f} min, {name}: p95{','.join(p95s)}; {told}"


def ask(port: int, question: str) -> str | None:
    """Ask on a new connection; returns what went wrong."""
    headers = {"Authorization": f"Bearer {VICTIM}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        if question == "models":
            connection.request("GET", "/v1/models", headers=headers)
        else:
            body = {"model": MODEL, "prompt": "What is it?", "max_tokens": 4, "ignore_eos": True}
            connection.request("POST", "/v1/completions", json.dumps(body), headers)
        reply = connection.getresponse()
        reply.read()
        return None if reply.status == 200 else str(reply.status)
    except OSError as error:
        return repr(error)[:80]
    finally:
        connection.close()


def loop_s(server: Server) -> float:
    """Processor time of a server's main thread so far."""
    pid = server.process.pid
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(server: Server, block_s: float) -> Waits:
    """Both questions, twice a second, whatever has become of those before."""
    waits, began_s, loop_before_s = Waits(), time.monotonic(), loop_s(server)
    until_s = began_s + block_s

    def timed(question: str, due_s: float) -> None:
        wrong = ask(server.port, question)
        if wrong is None:
            waits.seconds[question].append(time.monotonic() - due_s)
        else:
            waits.failed[f"{question}: {wrong}"] += 1

    with ThreadPoolExecutor(64) as threads:
        due_s = time.monotonic()
        while due_s < until_s:
            for question in QUESTIONS:
                time.sleep(max(0.0, due_s - time.monotonic()))
                threads.submit(timed, question, due_s)
                due_s += EVERY_S / len(QUESTIONS)
    waits.loop_s, waits.wall_s = loop_s(server) - loop_before_s, time.monotonic() - began_s
    return waits


@contextlib.contextmanager
def attacking(name: str, server: Server, key: str, *more: str) -> Iterator[Counter[str]]:
    """A process that attacks until the block is left, and says then what it did."""
    command = [sys.executable, "-m", "tests.soak.byte_attacks", name, "127.0.0.1", str(server.port)]
    done: Counter[str] = Counter()
    with subprocess.Popen(
        [*command, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{key}\n")
        process.stdin.close()
        assert process.stdout.readline() == "under way\n"
        try:
            yield done
        finally:
            process.send_signal(signal.SIGTERM)
            done.update(json.loads(process.stdout.read()))


def block(pair: Pair, name: str, server: Server, block_s: float) -> None:
    """One block without the attack and one beside it."""
    is_work = name in WORKING
    polite = attacking(name, server, POLITE, str(AT_ONCE)) if is_work else contextlib.nullcontext()
    with polite as done_politely:
        pair.quiet.add(watched(server, block_s))
    if done_politely is not None:
        pair.done_politely += done_politely
        time.sleep(GAP_S)
    with attacking(name, server, "" if name in KEYLESS else f"key-{name}") as done:
        pair.attacked.add(watched(server, block_s))
    pair.done += done
    pair.loads.append(round(os.getloadavg()[0], 1))
    time.sleep(GAP_S)


def faults_of(name: str, pair: Pair, quiet: Waits) -> Iterator[str]:
    """The promises that were broken beside an attack."""
    for question in QUESTIONS:
        with_s = pair.attacked.p95_s(question)
        if name in WORKING and question == "answer":
            most_s = MAX_WORKING_RATIO * pair.quiet.p95_s(question)
        else:
            most_s = MAX_RATIO * (quiet if name in WORKING else pair.quiet).p95_s(question) + MORE_S
        if with_s > most_s:
            yield f"{name}: p95 of {question} is {1e3 * with_s:.0f} ms, over {1e3 * most_s:.0f} ms"
    for what, count in pair.attacked.failed.items():
        yield f"{name}: {count} times {what}"


def remember(server: Server) -> None:
    """Fill the attacker's memory, so that its routes have something to list."""
    with server.client("key-memory") as client, ThreadPoolExecutor(AT_ONCE) as threads:

        def fill(number: int) -> None:
            body = {"model": MODEL, "prompt": "hi", "max_tokens": 4, "ignore_eos": True}
            client.post("/v1/completions", json={**body, "headstart": {"stream": f"s{number}"}})

        list(threads.map(fill, range(NUM_STREAMS)))


def settled_mib(memory: ServerMemory, before_mib: float) -> float:
    """The server's memory once all clients have left, which may take a while."""
    until_s = time.monotonic() + MEMORY_PATIENCE_S
    while True:
        memory.sample()
        if memory.mib[-1] <= MAX_MEMORY_RATIO * before_mib or time.monotonic() > until_s:
            return memory.mib[-1]
        time.sleep(5)


def main() -> None:
    """Attack, watch and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="a Video-LLaVA; an untrained one is quick")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--block", type=float, default=6.0, help="seconds without, and beside")
    parser.add_argument("--attacks", nargs="*", choices=(*ATTACKS, *WORKING))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    names = options.attacks or [*ATTACKS, *WORKING]
    pairs = {name: Pair() for name in names}

    def note(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made:
        here = Workspace(Path(made), options.target.absolute(), None, Path(made), "float32")
        with running(here.start_ours(**SETTINGS)) as server:
            memory = ServerMemory(server)
            remember(server)
            for name in names:  # what every attack needs for the first time is no growth
                block(Pair(), name, server, min(1.0, options.block))
            time.sleep(10)
            before = replace(Footprint.of(server), num_tracebacks=0)
            memory.sample()
            before_mib, began_s = memory.mib[-1], time.monotonic()
            for name in itertools.cycle(names):
                if time.monotonic() > began_s + 60 * options.minutes and pairs[name].loads:
                    break
                pair = pairs[name]
                block(pair, name, server, options.block)
                note(pair.line(name, time.monotonic() - began_s))
                memory.sample()
            took_s = time.monotonic() - began_s
            after_mib = settled_mib(memory, before_mib)
            left = list(leftovers(server, OPERATOR, before))
    quiet, attacked = Waits(), Waits()
    for name, pair in pairs.items():
        if name not in WORKING:
            quiet.add(pair.quiet)
            attacked.add(pair.attacked)
    faults = [fault for name, pair in pairs.items() for fault in faults_of(name, pair, quiet)]
    if after_mib > MAX_MEMORY_RATIO * before_mib:
        faults.append(f"memory is {after_mib} MiB, and was {before_mib}")
    faults += left
    figures = {
        "minutes": round(took_s / 60, 1),
        "block_s": options.block,
        "quiet": quiet.told(),
        "attacked": attacked.told(),
        "attacks": {
            name: {
                "polite" if name in WORKING else "quiet": pair.quiet.told(),
                "attacked": pair.attacked.told(),
                "done": dict(pair.done),
                **({"done_politely": dict(pair.done_politely)} if name in WORKING else {}),
                "load": pair.loads,
            }
            for name, pair in pairs.items()
        },
        "memory_mib": {"before": before_mib, "after": after_mib, "samples": memory.mib},
        "left": left,
        "faults": faults,
    }
    command = ["python", "-m", "tests.soak.serve_bytes", *sys.argv[1:]]
    measurement = Measurement("serve_bytes", command, figures)
    measurement.write(options.output)
    print(measurement.line())
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
