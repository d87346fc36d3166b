"""Confined workers at hand, from the side of whoever has untrusted bytes to decode.

A worker serves one tenant. It is killed when a job overstays or breaks it, and another takes its
place; so does another nursery. Nothing here decodes in the server's own process.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from headstart.errors import MediaError
from headstart.sandbox.confinement import Allowance
from headstart.sandbox.nursery import LENGTH
from headstart.sandbox.turns import Turns
from headstart.sandbox.worker import Room, Worker, readable, received

RESTART_S = 1.0
MAX_JOBS = 256
"""Of one worker: what a decoder leaks or keeps does not pile up."""
MAX_BUSY_S = 30.0
"""Of one worker: its allowance of processor time is never used up by honest work."""
MAX_KEPT_BYTES = 64 << 20
"""A worker whose shared memory holds more after a job is replaced, to give the memory back."""
SMALL_BYTES = 1 << 20
"""Less than this is copied without a thread."""
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")

T = TypeVar("T")


@dataclass(frozen=True)
class Job(Generic[T]):
    """One thing to do with some bytes, and how its result is read."""

    asked: Mapping[str, Any]
    content: bytes | memoryview
    read: Callable[[Mapping[str, Any], Worker], T]
    """From what the worker told and wrote; it checks both and may raise `ValueError`."""
    deadline_s: float


@dataclass(frozen=True)
class Shares:
    """How many workers there are, and how many of them one tenant may occupy."""

    at_once: int
    at_once_each: int


class Pool:
    """Used from one event loop only. `start` it there, `close` it at the end."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        shares: Shares,
        room: Room,
        allowance: Allowance,
    ) -> None:
        """``settings``: vLLM's ``media_io_kwargs``, and the ``vocabulary`` for grammars."""
        self._settings = settings
        self._environment = environment
        self._shares = shares
        self._room = room
        self._allowance = allowance
        self._turns = Turns(shares.at_once, shares.at_once_each)
        self._fresh: asyncio.Queue[Worker] = asyncio.Queue()
        self._idle: list[Worker] = []
        self._nursery: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._num_busy = 0
        self.is_up = False
        """Whether there are workers."""
        self.num_killed = 0
        """Workers that overstayed or broke down."""

    def start(self) -> None:
        """Workers come as soon as the nursery has imported what they need."""
        self._task = asyncio.ensure_future(self._tend())

    async def do(self, tenant: str, job: Job[T]) -> T:
        """Wait for this tenant's turn, then for the job. Raises `MediaError`."""
        if len(job.content) > self._room.max_input_bytes:
            raise MediaError(f"it may have {self._room.max_input_bytes} bytes at most")
        async with self._turns.turn(tenant):
            self._num_busy += 1
            try:
                return await self._by_worker(await self._worker(tenant), job)
            finally:
                self._num_busy -= 1

    async def _by_worker(self, worker: Worker, job: Job[T]) -> T:
        sound, start_s = False, time.monotonic()
        try:
            async with asyncio.timeout(job.deadline_s):
                told = await self._told(worker, job)
                if "error" not in told:
                    result = await asyncio.to_thread(job.read, told, worker)
            sound = True
            if "error" in told:
                raise MediaError(str(told["error"]))
            return result
        except TimeoutError as error:
            self.num_killed += 1
            raise MediaError(
                f"it took longer than {job.deadline_s:g} s; send something shorter"
            ) from error
        except (OSError, ValueError, TypeError, LookupError) as error:
            self.num_killed += 1
            raise MediaError(
                "the process that decoded it broke down, or used up its memory; send another"
            ) from error
        finally:
            worker.busy_s += time.monotonic() - start_s
            if sound and not _is_worn(worker):
                self._idle.append(worker)
            else:
                worker.end()

    async def _told(self, worker: Worker, job: Job[T]) -> dict[str, Any]:
        if len(job.content) > SMALL_BYTES:
            await asyncio.to_thread(worker.put, job.content)
        else:
            worker.put(job.content)
        return await worker.do({**job.asked, "num_bytes": len(job.content)})

    async def _worker(self, tenant: str) -> Worker:
        """One that this tenant had before; otherwise a fresh one, in another's place if need be."""
        for worker in [worker for worker in self._idle if worker.tenant == tenant]:
            self._idle.remove(worker)
            if worker.is_alive:
                return worker
            worker.end()
        while self._idle and len(self._idle) + self._num_busy > self._shares.at_once:
            self._idle.pop(0).end()
        while True:
            worker = await self._fresh.get()
            self._ask_for_another()
            try:
                worker.begin(tenant, self._room, self._allowance)
            except OSError:
                worker.end()
            else:
                return worker

    def close(self) -> None:
        """End every process."""
        if self._task is not None:
            self._task.cancel()
        self._lose_nursery()
        for worker in self._idle:
            worker.end()

    async def _tend(self) -> None:
        """Keep a nursery, and take in the workers it makes."""
        while True:
            with suppress(OSError):
                control = await self._start_nursery()
                if await received(control) == b"!":
                    self.is_up = True
                    self._ask_for_another()
                    await self._take_in(control)
            self.is_up = False
            self._lose_nursery()
            await asyncio.sleep(RESTART_S)

    async def _take_in(self, control: socket.socket) -> None:
        while True:
            await readable(control)
            sign, fds, _, _ = socket.recv_fds(control, 1, 2)
            if not sign:
                return
            self._fresh.put_nowait(Worker(socket.socket(fileno=fds[0]), fds[1]))

    async def _start_nursery(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._control = ours
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        root = str(Path(__file__).parents[2])
        search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        # One thread: a process with several cannot be forked safely.
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with theirs:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "headstart.sandbox.nursery"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**kept, "PYTHONPATH": search, **single, **self._environment},
            )
        told = json.dumps(self._settings).encode()
        await asyncio.get_running_loop().sock_sendall(ours, LENGTH.pack(len(told)) + told)
        return ours

    def _ask_for_another(self) -> None:
        if self._control is not None:
            with suppress(OSError):
                self._control.send(b"+")

    def _lose_nursery(self) -> None:
        nursery, self._nursery = self._nursery, None
        control, self._control = self._control, None
        while not self._fresh.empty():
            self._fresh.get_nowait().end()
        if nursery is not None:
            nursery.kill()
            nursery.wait()
        if control is not None:
            control.close()


def _is_worn(worker: Worker) -> bool:
    return (
        worker.num_jobs >= MAX_JOBS
        or worker.busy_s >= MAX_BUSY_S
        or worker.most_bytes > MAX_KEPT_BYTES
    )
