"""The process that forks confined workers.

Run by ``pool`` as ``python -m headstart.sandbox.nursery``. It imports what jobs need once. On its
socket (descriptor 0) it is first told how it is set up; then a byte asks for one more worker, and
the answer is that worker's socket and pidfd. It ends when the socket does.
"""

import contextlib
import json
import mmap
import os
import signal
import socket
import struct
from pathlib import Path
from typing import Any

from headstart.sandbox.confinement import Allowance, confine
from headstart.sandbox.grammars import Grammars
from headstart.sandbox.jobs import Jobs
from headstart.sandbox.rehearsal import rehearse
from headstart.sandbox.vllm_media import Loaders, lay_out_packages

MAX_MESSAGE_BYTES = 64 << 10
LENGTH = struct.Struct("<Q")
"""What comes before the settings: how long they are."""


def tend(control: socket.socket) -> None:
    """Fork as often as asked."""
    jobs = _prepared(json.loads(_received(control)))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that ended
    control.sendall(b"!")
    while control.recv(1):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not (pid := os.fork()):
            ours.close()
            os.closerange(0, 3)  # the control socket, and where a log might go
            _work(theirs, jobs)
        process = os.pidfd_open(pid)
        socket.send_fds(control, [b"."], [ours.fileno(), process])
        os.close(process)
        ours.close()
        theirs.close()


def _received(control: socket.socket) -> bytes:
    (length,) = LENGTH.unpack(control.recv(LENGTH.size, socket.MSG_WAITALL))
    return control.recv(length, socket.MSG_WAITALL)


def _prepared(settings: dict[str, Any]) -> Jobs:
    """With everything imported and loaded that is loaded on first use."""
    lay_out_packages()
    loaders = Loaders(settings["media_io_kwargs"])
    grammars = Grammars(settings["vocabulary"]) if settings["vocabulary"] else None
    rehearse(loaders)
    if (num_threads := len(list(Path("/proc/self/task").iterdir()))) != 1:
        raise RuntimeError(f"a process of {num_threads} threads cannot be forked safely")
    return Jobs(loaders, grammars)


def _work(theirs: socket.socket, jobs: Jobs) -> None:
    """One job after the other, until the socket ends or something unforeseen happens.

    The first message brings the memory that jobs are read from and written to. After it, the
    worker can open and receive nothing any more.
    """
    try:
        head, fds, _, _ = socket.recv_fds(theirs, MAX_MESSAGE_BYTES, 2)
        if len(fds) == 2:
            content, output = _mapped(fds[0], mmap.ACCESS_READ), _mapped(fds[1], mmap.ACCESS_WRITE)
            confine(Allowance(**json.loads(head)))
            while message := theirs.recv(MAX_MESSAGE_BYTES):
                asked = json.loads(message)
                told = jobs.do(asked, content[: asked["num_bytes"]], output)
                theirs.send(json.dumps(told).encode())
    finally:
        os._exit(0)


def _mapped(fd: int, access: int) -> memoryview:
    """A descriptor's memory, without the descriptor."""
    content = memoryview(mmap.mmap(fd, os.fstat(fd).st_size, access=access))
    os.close(fd)
    return content


if __name__ == "__main__":
    with contextlib.suppress(ConnectionError):
        tend(socket.socket(fileno=0))
