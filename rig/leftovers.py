"""What clients have left behind on a server, and whether it is still well."""

from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from rig.servers import Server, metric, wait_until

GAUGES = (
    "headstart_live_cameras",
    "headstart_media_bytes",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
)
"""Zero once all clients have left. Cached blocks that nobody uses do not count as usage."""
MORE_THREADS, MORE_PROCESSES = 8, 6
"""What pools may have grown by: the server's threads, its decoders."""
MAX_SHOWN = 1500
"""Characters of a traceback."""
UVICORNS_OWN = "UnicodeDecodeError: 'utf-8' codec can't decode"
"""uvicorn logs a text message that is no UTF-8 so, and closes the socket with 1007, as it must."""
PATIENCE_S = 120.0
"""A camera whose connection broke waits for its client."""


@dataclass(frozen=True)
class Footprint:
    """What a server consists of, apart from its memory."""

    num_threads: int
    num_processes: int
    num_tracebacks: int
    """In its log."""

    @classmethod
    def of(cls, server: Server) -> "Footprint":
        """Count it now."""
        return cls(
            psutil.Process(server.process.pid).num_threads(),
            len(server.children()),
            len(tracebacks(server)),
        )

    def has_grown(self, before: "Footprint") -> bool:
        """Whether there are more threads or processes than pools explain."""
        more_threads = self.num_threads - before.num_threads
        return (
            more_threads > MORE_THREADS
            or self.num_processes - before.num_processes > MORE_PROCESSES
        )


def tracebacks(server: Server) -> list[str]:
    """The beginnings of those in its log, but for those that are no failure."""
    _, *found = server.log.read_text(errors="replace").split("Traceback")
    return [one[:MAX_SHOWN] for one in found if UVICORNS_OWN not in one[:MAX_SHOWN]]


def leftovers(server: Server, operator_key: str, before: Footprint) -> Iterator[str]:
    """What is wrong with a server after all its clients have left."""
    if server.process.poll() is not None:
        yield f"the server ended:\n{server.tail()}"
        return
    client = server.client(operator_key)
    if (ready := client.get("/ready")).status_code != 200:
        yield f"the server is not ready: {ready.text}"
    for name in GAUGES:
        try:
            wait_until(lambda name=name: metric(client, name) == 0, name, PATIENCE_S)
        except AssertionError:
            yield f"{name} is still {metric(client, name):g}"
    try:
        wait_until(lambda: not Footprint.of(server).has_grown(before), "as before", PATIENCE_S)
    except AssertionError:
        yield f"it has grown from {before} to {Footprint.of(server)}"
    if Footprint.of(server).num_tracebacks > before.num_tracebacks:
        yield f"its log has a traceback, the last of which is:\n{tracebacks(server)[-1]}"
