"""What a process that reads untrusted bytes may do, and what the kernel says of it.

It sets limits on itself before the first byte, and on Linux, on x86-64 and ARM64, a seccomp filter:
the system calls that decoding needs, and no others. No allowed call opens a file or a socket,
starts a program or a process, signals another process, or makes memory executable; none starts a
thread, except in a worker that needs some. Other calls fail with EPERM.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

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


_LOAD, _EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_ARCHITECTURE, _NUMBER, _FIRST_ARGUMENT = 4, 0, 16  # offsets in the kernel's seccomp_data

_CLONE_THREAD = 0x00010000
_PROT_EXEC = 0x4
_PR_SET_NAME, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 15, 38, 22
_MODE_FILTER = 2


@dataclass(frozen=True)
class Architecture:
    """Numbers of system calls on one processor architecture."""

    audit: int
    allowed: tuple[int, ...]
    clone: int
    clone3: int
    mmap: int
    mprotect: int
    prctl: int
    tgkill: int


# futex, madvise, mremap, munmap, brk, clocks, sleeping, scheduling, random numbers, thread
# set-up, signal masks, closing, receiving the next job, sending the answer, ending.
X86_64 = Architecture(
    audit=0xC000003E,
    allowed=(
        202, 28, 25, 11, 12, 228, 229, 230, 35, 96, 201, 24, 204, 318, 273, 274, 334, 218,
        14, 15, 131, 39, 186, 324, 98, 99, 63, 3, 44, 45, 46, 309, 60, 231,
    ),
    clone=56, clone3=435, mmap=9, mprotect=10, prctl=157, tgkill=234,
)  # fmt: skip
ARM64 = Architecture(
    audit=0xC00000B7,
    allowed=(
        98, 233, 216, 215, 214, 113, 114, 115, 101, 169, 124, 123, 278, 99, 100, 293, 96,
        135, 139, 132, 172, 178, 283, 165, 179, 160, 57, 206, 207, 211, 168, 93, 94,
    ),
    clone=220, clone3=435, mmap=222, mprotect=226, prctl=167, tgkill=131,
)  # fmt: skip
_MACHINES = {"x86_64": X86_64, "aarch64": ARM64}


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


Step = tuple[int, int, int, int]


def has_filter() -> bool:
    return sys.platform == "linux" and platform.machine() in _MACHINES


def install_filter(*, has_threads: bool) -> None:
    """Filter this process's system calls from now on, for good; does nothing if unsupported."""
    if not has_filter():
        return
    steps = program_of(_MACHINES[platform.machine()], has_threads=has_threads)
    instructions = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the kernel refused the seccomp filter")


def program_of(machine: Architecture, *, has_threads: bool) -> list[Step]:
    """The steps of the filter, as the kernel runs them for each call."""
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for number in machine.allowed:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    if has_threads:  # but no processes
        # clone3 hides its arguments; without it the C library uses clone.
        steps += [(_EQUAL, 0, 1, machine.clone3), (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)]
        steps += _when(machine.clone, 0, _CLONE_THREAD, _CLONE_THREAD)
    steps += _when(machine.mmap, 2, _PROT_EXEC, 0)
    steps += _when(machine.mprotect, 2, _PROT_EXEC, 0)
    steps += _when(machine.prctl, 0, 0xFFFFFFFF, _PR_SET_NAME)
    # abort() signals its own process; if that failed, it would retry for ever.
    steps += _when(machine.tgkill, 0, 0xFFFFFFFF, os.getpid())
    return [*steps, (_RETURN, 0, 0, _REFUSE)]


def _when(number: int, argument: int, mask: int, wanted: int) -> list[Step]:
    """Allow a call if one of its arguments, masked, equals ``wanted``."""
    return [
        (_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument),
        (_AND, 0, 0, mask),
        (_EQUAL, 0, 1, wanted),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]


@dataclass(frozen=True)
class ProcessState:
    """What the kernel says of another process, as of when it was read."""

    cpu_s: float
    """Processor time that all its threads have used."""
    num_threads: int

    @classmethod
    def of(cls, pid: int) -> "ProcessState":
        """Raises `OSError` or `LookupError` where the process has ended."""
        # The second field is the program's name, which may hold anything but is in parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return cls(cpu_s, int(fields[17]))
