"""A confined process tries to escape in every way that a taken-over decoder might."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from headstart.live.sources.confined import confinement

ESCAPES = {
    "open a file": "open('/etc/passwd').read()",
    "open a file by its old name": "libc.syscall(2, b'/etc/passwd', 0)",
    "write a file": "open('/tmp/headstart-escape', 'w')",
    "list a directory": "os.listdir('/')",
    "look at a file": "os.stat('/etc/passwd')",
    "open a socket": "socket.socket()",
    "open a UDP socket": "socket.socket(type=socket.SOCK_DGRAM)",
    "open a pipe": "os.pipe()",
    "copy a descriptor": "os.dup(ours.fileno())",
    "write to a descriptor": "os.write(ours.fileno(), b'x')",
    "fork": "os.fork()",
    "start a program": "os.execv('/bin/true', ['true'])",
    "end another process": "os.kill(os.getppid(), 0)",
    "trace another process": "libc.ptrace(16, os.getppid(), 0, 0)",
    "read another process": "libc.process_vm_readv(os.getppid(), 0, 0, 0, 0, 0)",
    "make memory executable": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "raise its limits": "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))",
    "drop its alarm": "signal.setitimer(signal.ITIMER_REAL, 1)",
    "lift the filter": "libc.prctl(22, 0, 0, 0, 0)",
    "change its name space": "libc.unshare(0x10000000)",
    "start a thread": "_thread.start_new_thread(id, (0,))",
    "start a thread anew": "libc.syscall(435, ctypes.byref(ctypes.create_string_buffer(88)), 88)",
    "use io_uring": "libc.syscall(425, 8, ctypes.byref(ctypes.create_string_buffer(256)))",
}
PROGRAM = """
import _thread, ctypes, json, mmap, os, resource, signal, socket, sys
from headstart.live.sources.confined.confinement import ResourceLimits, confine
ours = socket.socket(fileno=int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
for name in ("ptrace", "process_vm_readv", "unshare", "prctl", "syscall"):
    getattr(libc, name)
escapes = {name: compile(code, name, "eval") for name, code in json.loads(sys.argv[2]).items()}
confine(ResourceLimits(cpu_s=20, memory_bytes=64 << 20))
found = {}
for name, escape in escapes.items():
    try:
        said = eval(escape)
        found[name] = "refused" if said == -1 else f"got {said!r}"
    except (OSError, PermissionError, RuntimeError, ValueError) as error:
        found[name] = "refused"
    except BaseException as error:
        found[name] = repr(error)
try:
    bytearray(256 << 20)
    found["take memory"] = "got it"
except MemoryError:
    found["take memory"] = "refused"
ours.send(json.dumps(found).encode())
os._exit(0)
"""


def run(program: str, *words: str) -> tuple[bytes, int]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-c", program, str(theirs.fileno()), *words],
            pass_fds=[theirs.fileno()],
            timeout=60,
            check=False,
        )
        theirs.close()
        return ours.recv(1 << 16), done.returncode


@pytest.mark.skipif(not confinement.has_filter(), reason="no seccomp filter for this machine")
def test_a_confined_process_reaches_nothing():
    said, _ = run(PROGRAM, json.dumps(ESCAPES))
    found = json.loads(said)
    assert set(found) == {*ESCAPES, "take memory"}
    assert {name: result for name, result in found.items() if result != "refused"} == {}


def test_the_escapes_work_without_confinement():
    """Otherwise the test above could not fail."""
    free = PROGRAM.replace("confine(ResourceLimits(cpu_s=20, memory_bytes=64 << 20))", "")
    possible = {
        name: ESCAPES[name]
        for name in (
            "open a file",
            "open a socket",
            "open a pipe",
            "look at a file",
            "start a thread",
        )
    }
    said, _ = run(free, json.dumps(possible))
    assert all(result.startswith("got") for result in json.loads(said).values())


def test_rlimits_alone_let_nothing_be_opened():
    """They are all there is where no seccomp filter is supported."""
    alone = PROGRAM.replace(
        "confine(Resource", "C.install_filter = lambda **_: None\nconfine(Resource"
    )
    alone = alone.replace(
        "import _thread", "import headstart.live.sources.confined.confinement as C, _thread"
    )
    tried = ("open a file", "write a file", "open a socket", "open a pipe", "raise its limits")
    if_root = tried[:-1]  # root may raise its own limits
    said, _ = run(alone, json.dumps({name: ESCAPES[name] for name in if_root}))
    assert set(json.loads(said).values()) == {"refused"}


@pytest.mark.skipif(not confinement.has_filter(), reason="no seccomp filter for this machine")
def test_a_process_that_needs_threads_has_threads_and_no_processes():
    threaded = PROGRAM.replace("64 << 20)", "64 << 20, has_threads=True)")
    names = ("start a thread", "fork", "start a program", "start a thread anew")
    found = json.loads(run(threaded, json.dumps({name: ESCAPES[name] for name in names}))[0])
    assert found.pop("start a thread").startswith("got")
    assert set(found.values()) == {"refused"}


REFUSED, ALLOWED = 0x00050000, 0x7FFF0000


def decided(machine, *, has_threads, number, first=0):
    """What the filter says of a system call, computed as the kernel computes it."""
    steps = confinement.program_of(machine, has_threads=has_threads)
    call, value, place = {0: number, 4: machine.audit, 16: first & 0xFFFFFFFF}, 0, 0
    while True:
        code, if_true, if_false, operand = steps[place]
        place += 1
        match code:
            case 0x20:  # load
                value = call[operand]
            case 0x54:  # and
                value &= operand
            case 0x15:  # equal
                place += if_true if value == operand else if_false
            case 0x06:  # return
                return operand & 0xFFFF0000


@pytest.mark.parametrize(
    "machine", [confinement.X86_64, confinement.ARM64], ids=["x86-64", "ARM64"]
)
def test_threads_are_started_only_where_some_are_needed(machine):
    """Of both architectures, whichever this one is."""
    thread = 0x3D0F00  # the flags of the C library
    for number, first in ((machine.clone, thread), (machine.clone3, 0), (machine.clone, 17)):
        assert decided(machine, has_threads=False, number=number, first=first) == REFUSED
    assert decided(machine, has_threads=True, number=machine.clone, first=thread) == ALLOWED
    assert decided(machine, has_threads=True, number=machine.clone, first=17) == REFUSED
    for number in machine.allowed:
        assert decided(machine, has_threads=False, number=number) == ALLOWED


def test_a_process_that_computes_for_ever_is_ended():
    endless = PROGRAM.replace("cpu_s=20", "cpu_s=1").replace("found = {}", "while True: pass")
    said, status = run(endless, "{}")
    assert not said
    assert status < 0


def test_a_process_that_aborts_is_ended_at_once():
    """abort() signals its own process; if the filter refused that, it would retry for ever."""
    giving_up = PROGRAM.replace("found = {}", "os.abort()")
    said, status = run(giving_up, "{}")
    assert not said
    assert status == -signal.SIGABRT


def test_a_process_that_crashes_is_ended_at_once_in_spite_of_a_crash_handler():
    crashing = PROGRAM.replace("found = {}", "ctypes.string_at(0)")
    caught = crashing.replace(
        "confine(ResourceLimits(cpu_s=20",
        "signal.signal(signal.SIGSEGV, lambda *_: None)\nconfine(ResourceLimits(cpu_s=1",
    )
    said, status = run(caught, "{}")
    assert not said
    assert status == -signal.SIGSEGV
