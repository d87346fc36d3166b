"""The seccomp filter of a worker: the system calls that decoding needs, and no others.

No allowed call opens a file or a socket, starts a program or a process, signals another process,
or makes memory executable; none starts a thread, except in a worker that needs some. Other calls
fail with EPERM. Linux only, on x86-64 and ARM64.
"""

import ctypes
import errno
import os
import platform
import sys
from dataclasses import dataclass

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


def is_supported() -> bool:
    """Whether there is a filter for this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def install_filter(*, has_threads: bool) -> None:
    """Filter this process's system calls from now on, for good; does nothing if unsupported."""
    if not is_supported():
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
