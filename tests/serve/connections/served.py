"""An application under the installed uvicorn, with our bounds, in the test's own event loop."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from headstart_server.connections.connection import OpenConnections
from headstart_server.connections.uvicorn_protocols import bound_connections
from headstart_server.limits import Limits

uvicorn = pytest.importorskip("uvicorn")  # it comes with vLLM
uvloop = pytest.importorskip("uvloop")
PATIENCE_S = 60.0


@dataclass
class Clock:
    """The tests turn it."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Served:
    """A running server."""

    port: int
    uvicorn: Any
    clock: Clock
    connections: OpenConnections
    longest_turn_s: float = 0.0
    """Processor time of the loop's longest turn so far."""
    clients: list[socket.socket] = field(default_factory=list)

    async def connect(self) -> "Client":
        loop = asyncio.get_running_loop()
        raw = socket.socket()
        raw.setblocking(False)
        await loop.sock_connect(raw, ("127.0.0.1", self.port))
        self.clients.append(raw)
        return Client(raw)

    @property
    def num_held(self) -> int:
        """Requests that wait behind another of their connection."""
        return sum(len(one.pipeline) for one in self.uvicorn.server_state.connections)

    async def look_turns(self) -> None:
        """Time every turn, until cancelled."""
        while True:
            began_s = time.thread_time()
            await asyncio.sleep(0)
            self.longest_turn_s = max(self.longest_turn_s, time.thread_time() - began_s)


@dataclass
class Client:
    """Speaks bytes."""

    raw: socket.socket

    async def send(self, content: bytes) -> None:
        """Send it, however long the server takes to read it."""
        await asyncio.wait_for(
            asyncio.get_running_loop().sock_sendall(self.raw, content), PATIENCE_S
        )

    def send_some(self, content: bytes) -> int:
        """Send what the socket's buffers take now; returns how much."""
        with contextlib.suppress(BlockingIOError):
            return self.raw.send(content)
        return 0

    async def read(self, num_bytes: int = 1 << 16) -> bytes:
        """What comes next; empty at the end."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(loop.sock_recv(self.raw, num_bytes), PATIENCE_S)
        return b""

    async def read_until(self, words: bytes, count: int = 1) -> bytes:
        """Until these words have come so often."""
        found = b""
        while found.count(words) < count:
            more = await self.read()
            assert more, f"the connection ended after {found[-300:]!r}"
            found += more
        return found

    async def read_to_end(self) -> bytes:
        found = b""
        while more := await self.read():
            found += more
        return found


async def settle() -> None:
    """Until nothing moves any more: what is sent is read, and what it causes is done."""
    for _ in range(300):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served(
    app: Any, *, is_bounded: bool = True, limits: Limits | None = None
) -> AsyncIterator[Served]:
    """Until the block is left."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
    config.load()
    clock = Clock()
    connections = OpenConnections(clock)
    if is_bounded:
        bound_connections(config, limits or Limits(), connections)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.ensure_future(server._serve(sockets=[listening]))
    running = Served(listening.getsockname()[1], server, clock, connections)
    looking = asyncio.ensure_future(running.look_turns())
    try:
        while not server.started:
            await asyncio.sleep(0)
        yield running
    finally:
        looking.cancel()
        server.should_exit = server.force_exit = True
        for client in running.clients:
            client.close()
        await asyncio.wait_for(serving, PATIENCE_S)


def run(work: Coroutine[Any, Any, None]) -> None:
    """In a loop as vLLM's server has."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
