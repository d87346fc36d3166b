"""What a process may take, set by itself before it looks at bytes of a stranger."""

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

from headstart.sandbox.seccomp import close_system_calls

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


@dataclass(frozen=True)
class Allowance:
    """For one worker, from its first job to its last."""

    cpu_s: int
    memory_bytes: int
    """Beside what it holds already, and beside the memory it shares with the pool."""


def confine(allowance: Allowance) -> None:
    """No more files, sockets or processes; so much time and memory. There is no way back."""
    # Some packages catch crashes to report them, which a confined process can do no more.
    for number in _CRASHES:
        signal.signal(number, signal.SIG_DFL)
    held = _held_bytes()
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        # No new descriptor: nothing can be opened, connected or received.
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_DATA, held + allowance.memory_bytes),
        (resource.RLIMIT_CPU, allowance.cpu_s),
    ):
        resource.setrlimit(limit, (value, value))
    close_system_calls()


def _held_bytes() -> int:
    """Private memory of this process, as RLIMIT_DATA counts it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except (OSError, IndexError):
        return 512 << 20  # no /proc: what the imports take, generously
    return pages * os.sysconf("SC_PAGE_SIZE")
