"""The limits that a worker sets on itself before it reads untrusted bytes."""

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

from headstart.live.sources.confined.seccomp import install_filter

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


@dataclass(frozen=True)
class ResourceLimits:
    """What one worker may use, all its jobs together."""

    cpu_s: int
    memory_bytes: int
    """On top of what it holds before its first job, and of the memory it shares with the pool."""
    has_threads: bool = False
    """Whether it may start threads, as FFmpeg does for a file; the pool watches their number."""


def confine(limits: ResourceLimits) -> None:
    """Forbid this process new files, sockets and processes, for good; bound its time and memory."""
    # Some packages install crash handlers, which cannot report anything once confined.
    for number in _CRASHES:
        signal.signal(number, signal.SIG_DFL)
    held = _held_bytes()
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        # No new descriptor: nothing can be opened, connected or received.
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_DATA, held + limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
    ):
        resource.setrlimit(limit, (value, value))
    install_filter(has_threads=limits.has_threads)


def _held_bytes() -> int:
    """Private memory of this process, as RLIMIT_DATA counts it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except (OSError, IndexError):
        return 512 << 20  # no /proc: a generous estimate of what the imports take
    return pages * os.sysconf("SC_PAGE_SIZE")
