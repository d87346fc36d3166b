"""A confined worker process and the memory it shares with the pool, seen from the pool."""

import asyncio
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ProcessState, ResourceLimits
from headstart_server.sandbox.fork_server import MAX_MESSAGE_BYTES

WAIT_TIMES = 8
"""By the clock a job is ended after so many times its processor time, whatever it waits for."""
POLL_S = 0.05
"""The kernel counts processor time in steps of about 10 ms; nothing is gained by looking sooner."""
MAX_JOBS = 256
"""Of one worker, so that what a decoder leaks does not accumulate."""
MAX_CPU_S = 30.0
"""Of one worker, so that ordinary jobs never reach the limit that the kernel keeps."""
MAX_PEAK_BYTES = 64 << 20
"""A worker that used more shared memory is replaced, to give the memory back."""
MAX_THREADS = 64 + 2 * (os.cpu_count() or 1)
"""Of one worker. FFmpeg starts one for each processor, and some more."""
_SEALED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class BufferSizes:
    """How much memory a worker shares with the pool for the input and the output of its jobs."""

    input_bytes: int
    output_bytes: int


class SlowJobError(MediaError):
    """A job used up its processor time, or did not end."""


class Worker:
    """Serves one tenant, so that its process never holds bytes of two."""

    def __init__(self, sock: socket.socket, pidfd: int) -> None:
        self._socket, self._pidfd = sock, pidfd
        sock.setblocking(False)
        self._input: mmap.mmap | None = None
        self._output: mmap.mmap | None = None
        self.tenant = ""
        self.num_jobs = 0
        self.is_killed = False
        self._cpu_s = 0.0
        self.peak_bytes = 0
        """Of shared memory used by the largest job so far; the kernel keeps those pages."""

    def assign(self, tenant: str, buffers: BufferSizes, limits: ResourceLimits) -> None:
        """Give the worker its tenant and its memory; it confines itself on receipt."""
        self.tenant = tenant
        descriptors = [_memory(buffers.input_bytes), _memory(buffers.output_bytes)]
        try:
            self._input = mmap.mmap(descriptors[0], buffers.input_bytes)
            self._output = mmap.mmap(descriptors[1], buffers.output_bytes, prot=mmap.PROT_READ)
            message = json.dumps(asdict(limits)).encode()
            socket.send_fds(self._socket, [message], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs; a pidfd becomes readable when the process has ended."""
        poll = select.poll()  # select() takes no descriptor above 1,023
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    @property
    def pid(self) -> int:
        """The number of its process; raises `ValueError` if the process has ended."""
        text = Path(f"/proc/self/fdinfo/{self._pidfd}").read_text()
        pid = int(text.partition("Pid:")[2].split()[0])
        if pid <= 0:
            raise ValueError("the process has ended")
        return pid

    @property
    def cpu_s(self) -> float:
        """Processor time of all its threads since it was forked; as last read once it has ended."""
        with suppress(OSError, ValueError, IndexError):
            used_s = ProcessState.of(self.pid).cpu_s
            if self.is_alive:  # else the number may belong to another process by now
                self._cpu_s = used_s
        return self._cpu_s

    def end_if_crowded(self) -> None:
        """End the process where it has more threads than decoding takes. From the event loop.

        A job that it has under way fails, and the worker is replaced.
        """
        if self.is_killed:
            return
        with suppress(OSError, ValueError, LookupError):
            if ProcessState.of(self.pid).num_threads > MAX_THREADS:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    @property
    def is_worn(self) -> bool:
        """Whether it has worked enough, and another should take its place."""
        return (
            self.num_jobs >= MAX_JOBS or self.cpu_s >= MAX_CPU_S or self.peak_bytes > MAX_PEAK_BYTES
        )

    def write_input(self, content: bytes | memoryview) -> None:
        assert self._input is not None
        self._input[: len(content)] = content
        self.peak_bytes = max(self.peak_bytes, len(content))

    async def run(self, request: Mapping[str, Any], cpu_s: float) -> dict[str, Any]:
        """Run one job. Its result is untrusted, and so is its output. Raises `SlowJobError`."""
        self.num_jobs += 1
        start_cpu_s, max_wait_s = self.cpu_s, WAIT_TIMES * cpu_s
        deadline_s = time.monotonic() + max_wait_s
        self._socket.send(json.dumps(request).encode())
        message = None
        while message is None:
            left_s = cpu_s - (self.cpu_s - start_cpu_s)
            if left_s <= 0:
                raise SlowJobError(
                    f"it took more than {cpu_s:g} s of processor time; send something shorter"
                )
            if (wait_s := deadline_s - time.monotonic()) <= 0:
                raise SlowJobError(
                    f"it was not done after {max_wait_s:g} s; try again, or send something shorter"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, max(left_s, POLL_S))):
                    message = await receive(self._socket)
        result = json.loads(message)
        if not isinstance(result, dict):
            raise ValueError("a worker answers with an object")
        return result

    def copy_output(self, start: int, num_bytes: int) -> bytearray:
        """Copy a part of the output, which the worker could still change."""
        assert self._output is not None
        if not 0 <= start <= start + num_bytes <= len(self._output):
            raise ValueError("a worker claims more output than there is")
        self.peak_bytes = max(self.peak_bytes, start + num_bytes)
        return bytearray(memoryview(self._output)[start : start + num_bytes])

    def kill(self) -> None:
        """End the process, whatever it is doing. Idempotent."""
        if self.is_killed:
            return
        self.is_killed = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        os.close(self._pidfd)
        self._socket.close()


def _memory(num_bytes: int) -> int:
    """Create shared memory whose size neither side can change. Unwritten pages take no room."""
    fd = os.memfd_create("headstart", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, num_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALED)
    return fd


async def receive(sock: socket.socket) -> bytes:
    """Receive one message; raises where the other end has closed the socket."""
    await wait_readable(sock)
    message = sock.recv(MAX_MESSAGE_BYTES)
    if not message:
        raise ConnectionResetError("the process ended")
    return message


async def wait_readable(sock: socket.socket) -> None:
    loop, fd = asyncio.get_running_loop(), sock.fileno()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
