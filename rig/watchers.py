"""Watches a server from outside while it is attacked.

Memory, files, ports, processes and threads of its process tree; whether the target's engine is
still the same process; and how long another tenant waits for an ordinary answer meanwhile.
"""

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil

from rig.servers import CHAT, Server

SAMPLE_S = 0.25


@dataclass(frozen=True)
class Port:
    """A port that a process listens on, or a UDP socket."""

    kind: str
    number: int


@dataclass
class Seen:
    """The maximum of each over time."""

    tree_bytes: int = 0
    processes: int = 0
    files: int = 0
    server_threads: int = 0
    ports: set[Port] = field(default_factory=set)
    """Opened after the watcher started."""
    engine_changed: bool = False

    def told(self) -> dict[str, Any]:
        """For a result."""
        return {
            "peak_mib": round(self.tree_bytes / (1 << 20)),
            "peak_processes": self.processes,
            "peak_files": self.files,
            "peak_server_threads": self.server_threads,
            "ports": sorted(f"{port.kind} {port.number}" for port in self.ports),
            "engine_changed": self.engine_changed,
        }


class Watcher:
    """Samples a server's process tree every quarter of a second, from a thread of its own."""

    def __init__(self, server: Server) -> None:
        self.seen = Seen()
        self._server = server
        self._engine = server.engine().pid
        self._known = {port for process in self._tree() for port in _ports(process)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watcher":
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Take one sample now."""
        tree_bytes = files = 0
        tree = self._tree()
        for process in tree:
            # Workers may end during the sample.
            with contextlib.suppress(psutil.Error):
                tree_bytes += process.memory_info().rss
                files += process.num_fds()
                self.seen.ports |= _ports(process) - self._known
        seen = self.seen
        seen.tree_bytes = max(seen.tree_bytes, tree_bytes)
        seen.files = max(seen.files, files)
        seen.processes = max(seen.processes, len(tree))
        seen.engine_changed |= not any(process.pid == self._engine for process in tree)
        with contextlib.suppress(psutil.Error):
            threads = psutil.Process(self._server.process.pid).num_threads()
            seen.server_threads = max(seen.server_threads, threads)

    def _tree(self) -> list[psutil.Process]:
        try:
            server = psutil.Process(self._server.process.pid)
            return [server, *server.children(recursive=True)]
        except psutil.Error:
            return []

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self.look()


def _ports(process: psutil.Process) -> set[Port]:
    """Ports that a process listens on, and those of its UDP sockets."""
    found = set()
    with contextlib.suppress(psutil.Error):
        for connection in process.net_connections("inet"):
            if connection.type == socket.SOCK_DGRAM and connection.laddr:
                found.add(Port("udp", connection.laddr.port))
            elif connection.status == psutil.CONN_LISTEN:
                found.add(Port("tcp", connection.laddr.port))
    return found


@dataclass
class Waits:
    """How long one tenant waited for each of its answers."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def longest_s(self) -> float:
        """Of all answers; 0 if there was none."""
        return max(self.seconds, default=0.0)

    def told(self) -> dict[str, Any]:
        """For a result."""
        if len(self.seconds) < 2:
            return {"answers": len(self.seconds), "failures": self.failures[:10]}
        cuts = statistics.quantiles(self.seconds, n=100, method="inclusive")
        return {
            "answers": len(self.seconds),
            "p50_ms": round(cuts[49] * 1e3, 1),
            "p95_ms": round(cuts[94] * 1e3, 1),
            "max_ms": round(self.longest_s * 1e3, 1),
            "failures": self.failures[:10],
        }


@contextlib.contextmanager
def neighbour(client: httpx.Client, body: dict[str, Any], pause_s: float = 0.2) -> Iterator[Waits]:
    """Another tenant, which keeps asking the same ordinary question until the block is left."""
    waits, stop = Waits(), threading.Event()

    def ask() -> None:
        # At once, and so at least once: the block may last shorter than a pause.
        while True:
            began_s = time.monotonic()
            try:
                reply = client.post(CHAT, json=body)
                if reply.status_code != 200:
                    waits.failures.append(f"{reply.status_code}: {reply.text[:200]}")
            except httpx.HTTPError as error:
                waits.failures.append(repr(error))
            waits.seconds.append(time.monotonic() - began_s)
            if stop.wait(pause_s):
                return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield waits
    finally:
        stop.set()
        thread.join()
