"""A pool of confined workers that decode untrusted bytes for the server.

A worker serves one tenant. The pool kills a worker whose job takes too much time or breaks it, and
forks another. It also restarts the fork server. Nothing is decoded in the server's own process.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ResourceLimits
from headstart_server.sandbox.fork_server import LENGTH
from headstart_server.sandbox.worker import (
    BufferSizes,
    SlowJobError,
    Worker,
    receive,
    wait_readable,
)

RESTART_S = 1.0
WATCH_S = 0.1
"""How often the threads of workers are counted."""
SMALL_BYTES = 1 << 20
"""Less than this is copied on the event loop, more in a thread."""
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")

T = TypeVar("T")


@dataclass(frozen=True)
class Job(Generic[T]):
    """One request to a worker, the bytes it is about, and how to read the result."""

    request: Mapping[str, Any]
    content: bytes | memoryview
    read: Callable[[Mapping[str, Any], Worker], T]
    """Checks the worker's result and output, makes a value of them, or raises `ValueError`."""
    cpu_s: float
    """Processor time that it may take."""


class FairQueue:
    """Gives tenants their turns round-robin; bounds how many jobs run, of all and of each.

    Used from one event loop only.
    """

    def __init__(self, max_running: int, max_running_of_tenant: int) -> None:
        self.max_running = max_running
        self._max_running_of_tenant = max_running_of_tenant
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn of this tenant's and hold it until the block is left."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(mine)
        self._start_next()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._release(tenant)  # the turn was given and the caller cancelled at once
            else:
                mine.cancel()
            raise
        try:
            yield
        finally:
            self._release(tenant)

    def _release(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._start_next()

    def _start_next(self) -> None:
        while self._running.total() < self.max_running and (tenant := self._next()) is not None:
            self._running[tenant] += 1

    def _next(self) -> str | None:
        """Give the next tenant its turn and move it to the end of the queue."""
        for tenant, waiting in list(self._waiting.items()):
            while waiting and waiting[0].done():
                waiting.popleft()  # cancelled while it waited
            if not waiting:
                del self._waiting[tenant]
            elif self._running[tenant] < self._max_running_of_tenant:
                waiting.popleft().set_result(None)
                self._waiting.move_to_end(tenant)
                return tenant
        return None


class Pool:
    """Used from one event loop only. `start` it there, `close` it at the end."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        queue: FairQueue,
        buffers: BufferSizes,
        limits: ResourceLimits,
    ) -> None:
        """``settings``: vLLM's ``media_io_kwargs``, and the ``vocabulary`` for grammars.

        It keeps as many workers as jobs of the ``queue`` may run.
        """
        self._settings = settings
        self._environment = environment
        self.queue = queue
        self._buffers = buffers
        self._limits = limits
        self._fresh: asyncio.Queue[Worker] = asyncio.Queue()
        self._idle: list[Worker] = []
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._given: WeakSet[Worker] = WeakSet()
        """Workers that were given something to do."""
        self._num_busy = 0
        self.is_up = False
        """Whether there are workers."""
        self.num_killed = 0
        """Workers whose job ran too long or broke them."""

    def start(self) -> None:
        """Start the fork server; workers come once it has imported what they need."""
        self._tasks = [asyncio.ensure_future(each) for each in (self._supervise(), self._watch())]

    async def run(self, tenant: str, job: Job[T]) -> T:
        """Wait for this tenant's turn, then for the job. Raises `MediaError`."""
        if len(job.content) > self._buffers.input_bytes:
            raise MediaError(f"it may have {self._buffers.input_bytes} bytes at most")
        async with self.queue.turn(tenant):
            self._num_busy += 1
            try:
                worker = await self._worker(tenant)
                try:
                    return await self.run_on(worker, job)
                finally:
                    self._keep(worker)
            finally:
                self._num_busy -= 1

    async def run_on(self, worker: Worker, job: Job[T]) -> T:
        """Run a job; raises `MediaError`. Kills the worker unless it could run another."""
        is_sound = False
        try:
            result = await self._result(worker, job)
            if "error" not in result:
                value = await asyncio.to_thread(job.read, result, worker)
            is_sound = True
            if "error" in result:
                raise MediaError(str(result["error"]))
            return value
        except SlowJobError:
            self.num_killed += 1
            raise
        except (OSError, ValueError, TypeError, LookupError) as error:
            self.num_killed += 1
            raise MediaError(
                "the process that decoded it broke down, or used up its memory; send another"
            ) from error
        finally:
            if not is_sound:
                worker.kill()

    def _keep(self, worker: Worker) -> None:
        """Keep a worker for its tenant's next job, unless it has worked enough."""
        if worker.is_killed:
            return
        if worker.is_worn:
            worker.kill()
        else:
            self._idle.append(worker)

    async def _result(self, worker: Worker, job: Job[T]) -> dict[str, Any]:
        if len(job.content) > SMALL_BYTES:
            await asyncio.to_thread(worker.write_input, job.content)
        else:
            worker.write_input(job.content)
        return await worker.run({**job.request, "num_bytes": len(job.content)}, job.cpu_s)

    async def _worker(self, tenant: str) -> Worker:
        """An idle worker of this tenant's, or a fresh one; an idle one of others makes room."""
        for worker in [worker for worker in self._idle if worker.tenant == tenant]:
            self._idle.remove(worker)
            if worker.is_alive:
                return worker
            worker.kill()
        while self._idle and len(self._idle) + self._num_busy > self.queue.max_running:
            self._idle.pop(0).kill()
        return await self.fresh(tenant, self._buffers, self._limits)

    async def fresh(self, tenant: str, buffers: BufferSizes, limits: ResourceLimits) -> Worker:
        """A worker that has run no job yet; the caller kills it."""
        while True:
            worker = await self._fresh.get()
            self._request_worker()
            try:
                worker.assign(tenant, buffers, limits)
            except OSError:
                worker.kill()
            else:
                self._given.add(worker)
                return worker

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._end_fork_server()
        for worker in self._idle:
            worker.kill()

    async def _watch(self) -> None:
        """End workers that start threads without end: the kernel bounds all of a machine's only."""
        while True:
            await asyncio.sleep(WATCH_S)
            for worker in list(self._given):
                worker.end_if_crowded()

    async def _supervise(self) -> None:
        """Run the fork server, start it again when it ends, and collect the workers it forks."""
        while True:
            with suppress(OSError):
                control = await self._start_fork_server()
                if await receive(control) == b"!":
                    self.is_up = True
                    self._request_worker()
                    await self._collect_workers(control)
            self.is_up = False
            self._end_fork_server()
            await asyncio.sleep(RESTART_S)

    async def _collect_workers(self, control: socket.socket) -> None:
        while True:
            await wait_readable(control)
            message, fds, _, _ = socket.recv_fds(control, 1, 2)
            if not message:
                return
            self._fresh.put_nowait(Worker(socket.socket(fileno=fds[0]), fds[1]))

    async def _start_fork_server(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._control = ours
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        search = os.pathsep.join(filter(None, sys.path))  # it finds what this process finds
        # One thread: a process with several cannot be forked safely.
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with theirs:
            self._fork_server = subprocess.Popen(
                [sys.executable, "-m", "headstart_server.sandbox.fork_server"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**inherited, "PYTHONPATH": search, **single, **self._environment},
            )
        settings = json.dumps(self._settings).encode()
        await asyncio.get_running_loop().sock_sendall(ours, LENGTH.pack(len(settings)) + settings)
        return ours

    def _request_worker(self) -> None:
        if self._control is not None:
            with suppress(OSError):
                self._control.send(b"+")

    def _end_fork_server(self) -> None:
        fork_server, self._fork_server = self._fork_server, None
        control, self._control = self._control, None
        while not self._fresh.empty():
            self._fresh.get_nowait().kill()
        if fork_server is not None:
            fork_server.kill()
            fork_server.wait()
        if control is not None:
            control.close()


class Lease:
    """A worker that one stream keeps for as long as its jobs build on each other.

    Used from one event loop only, and by one task at a time. `close` it at the end. Each job waits
    for a turn of the tenant's, so that however many streams there are, no more of them compute at
    once than the pool has workers.
    """

    def __init__(
        self, pool: Pool, tenant: str, buffers: BufferSizes, limits: ResourceLimits
    ) -> None:
        self._pool, self._tenant = pool, tenant
        self._buffers, self._limits = buffers, limits
        self._worker: Worker | None = None

    @property
    def pid(self) -> int | None:
        """The process that has the stream now; none before it begins, and once it has ended."""
        worker = self._worker
        return worker.pid if worker is not None and worker.is_alive else None

    async def run(self, job: Job[T], *, begins: bool) -> T:
        """Run a job after the one before it. Raises `MediaError`.

        One that ``begins`` builds on none before. Only then is there a new worker, if the last one
        has ended or has worked enough.
        """
        async with self._pool.queue.turn(self._tenant):
            worker = self._worker
            if begins and (worker is None or worker.is_worn or not worker.is_alive):
                self.close()
                worker = await self._pool.fresh(self._tenant, self._buffers, self._limits)
                self._worker = worker
            if worker is None:
                raise MediaError("the process that decoded what it builds on has ended")
            try:
                return await self._pool.run_on(worker, job)
            finally:
                if worker.is_killed:
                    self._worker = None

    def close(self) -> None:
        """End the process, while no job runs."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
