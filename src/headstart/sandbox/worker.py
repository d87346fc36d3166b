"""A confined process and the memory it shares with the pool, as the pool sees it."""

import asyncio
import fcntl
import json
import mmap
import os
import select
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from headstart.sandbox.confinement import Allowance
from headstart.sandbox.nursery import MAX_MESSAGE_BYTES

_SEALED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Room:
    """The memory that one worker's jobs are read from and written to."""

    max_input_bytes: int
    max_output_bytes: int


class Worker:
    """Works for one tenant, so that what its process has seen is never another's."""

    def __init__(self, sock: socket.socket, pidfd: int) -> None:
        self._socket, self._pidfd = sock, pidfd
        sock.setblocking(False)
        self._input: mmap.mmap | None = None
        self._output: mmap.mmap | None = None
        self.tenant = ""
        self.num_jobs = 0
        self.busy_s = 0.0
        self.most_bytes = 0
        """Of the largest job so far: what its memory still holds."""

    def begin(self, tenant: str, room: Room, allowance: Allowance) -> None:
        """Give it its memory; from now on it is confined."""
        self.tenant = tenant
        descriptors = [_memory(room.max_input_bytes), _memory(room.max_output_bytes)]
        try:
            self._input = mmap.mmap(descriptors[0], room.max_input_bytes)
            self._output = mmap.mmap(descriptors[1], room.max_output_bytes, prot=mmap.PROT_READ)
            message = json.dumps(asdict(allowance)).encode()
            socket.send_fds(self._socket, [message], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @property
    def is_alive(self) -> bool:
        """Whether its process is there; a pidfd can be read once it has ended."""
        return not select.select([self._pidfd], [], [], 0)[0]

    def put(self, content: bytes | memoryview) -> None:
        """The bytes of the next job."""
        assert self._input is not None
        self._input[: len(content)] = content
        self.most_bytes = max(self.most_bytes, len(content))

    async def do(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One job. What it tells is untrusted, and so is what it wrote."""
        self.num_jobs += 1
        self._socket.send(json.dumps(asked).encode())
        told = json.loads(await received(self._socket))
        if not isinstance(told, dict):
            raise ValueError("a worker answers with an object")
        return told

    def taken(self, start: int, num_bytes: int) -> bytearray:
        """A copy of what it wrote: the worker could change it afterwards."""
        assert self._output is not None
        if not 0 <= start <= start + num_bytes <= len(self._output):
            raise ValueError("a worker claims more output than there is")
        self.most_bytes = max(self.most_bytes, start + num_bytes)
        return bytearray(memoryview(self._output)[start : start + num_bytes])

    def end(self) -> None:
        """Kill it, whatever it is doing."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        os.close(self._pidfd)
        self._socket.close()


def _memory(num_bytes: int) -> int:
    """Memory of this size and no other. What is not written takes no room."""
    fd = os.memfd_create("headstart", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, num_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALED)
    return fd


async def received(sock: socket.socket) -> bytes:
    """One message; an end without one is an error."""
    await readable(sock)
    message = sock.recv(MAX_MESSAGE_BYTES)
    if not message:
        raise ConnectionResetError("the process ended")
    return message


async def readable(sock: socket.socket) -> None:
    """Wait until there is something to receive."""
    loop, fd = asyncio.get_running_loop(), sock.fileno()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
