"""The memory of a server and all its processes over time, and whether it stays."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from rig.servers import Server

SAMPLE_S = 5.0
MIN_SAMPLES = 24
"""With fewer, the time was too short to tell growth from warming up."""
MAX_GROWTH_MIB = 64.0
"""Between the second third of the time and the last."""


def held_kib(pid: int) -> int:
    """A process's share of memory, without that of files it has mapped.

    Of a library's pages a process has the smaller a share the more others map them, so the sum with
    them rises when a program ends that has nothing to do with the server.
    """
    told = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in told)}
    return kib["Pss_Anon"] + kib["Pss_Shmem"]


@dataclass
class ServerMemory:
    """Samples while the server is used, and only then."""

    server: Server
    mib: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def sampled(self) -> Iterator[None]:
        """Sample until the block is left."""
        stop = threading.Event()

        def go() -> None:
            self.sample()
            while not stop.wait(SAMPLE_S):
                self.sample()

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.sample()

    def sample(self) -> None:
        """Take one now: what each process holds, a page that several share counted once."""
        kib = 0
        with contextlib.suppress(psutil.Error):
            for process in (psutil.Process(self.server.process.pid), *self.server.children()):
                with contextlib.suppress(OSError):
                    kib += held_kib(process.pid)
        self.mib.append(round(kib / 2**10, 1))

    @property
    def thirds_mib(self) -> list[float]:
        """The median of each third of the samples."""
        third = max(1, len(self.mib) // 3)
        parts = (self.mib[:third], self.mib[third : 2 * third], self.mib[-third:])
        return [round(median(part or self.mib), 1) for part in parts]

    @property
    def growth_mib(self) -> float:
        """From the second third to the last."""
        _, second, last = self.thirds_mib
        return round(last - second, 1)

    def faults(self) -> Iterator[str]:
        """Whether it grew, where enough samples tell."""
        if len(self.mib) >= MIN_SAMPLES and self.growth_mib > MAX_GROWTH_MIB:
            yield f"the server's memory grew by {self.growth_mib} MiB from one third to the next"

    def figures(self) -> dict[str, Any]:
        """For a result."""
        return {
            "begin_mib": self.mib[0],
            "end_mib": self.mib[-1],
            "thirds_mib": self.thirds_mib,
            "growth_mib": self.growth_mib,
            "samples_mib": self.mib,
        }
