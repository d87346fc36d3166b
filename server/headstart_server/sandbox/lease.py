"""A confined worker that one stream keeps for as long as its jobs build on each other."""

from typing import TypeVar

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ResourceLimits
from headstart_server.sandbox.pool import Job, Pool
from headstart_server.sandbox.worker import BufferSizes, Worker

T = TypeVar("T")


class Lease:
    """Used from one event loop only, and by one task at a time. `close` it at the end.

    Each job waits for a turn of the tenant's, so that however many streams there are, no more of
    them compute at once than the pool has workers.
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
        async with self._pool.turn(self._tenant):
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
