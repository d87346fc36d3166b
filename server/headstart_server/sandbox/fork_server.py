"""The process that forks confined workers.

`Pool` runs it as ``python -m headstart_server.sandbox.fork_server``. It imports what jobs need,
once. Its socket is descriptor 0: there it first receives its settings, then one byte for each
worker that the pool wants, and answers each byte with that worker's socket and pidfd. It ends when
the socket is closed.
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

from headstart.live.sources.confined.confinement import ResourceLimits, confine
from headstart_server.sandbox.jobs import Grammars, Jobs, warm_up
from headstart_server.sandbox.vllm_media import Loaders, stub_packages

MAX_MESSAGE_BYTES = 64 << 10
LENGTH = struct.Struct("<Q")
"""Precedes the settings: their length in bytes."""


def serve(control: socket.socket) -> None:
    """Fork one worker for each byte received."""
    jobs = _load_jobs(json.loads(_receive_settings(control)))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended workers
    control.sendall(b"!")
    while control.recv(1):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not (pid := os.fork()):
            ours.close()
            os.closerange(0, 3)  # the control socket, stdout and stderr
            _work(theirs, jobs)
        process = os.pidfd_open(pid)
        socket.send_fds(control, [b"."], [ours.fileno(), process])
        os.close(process)
        ours.close()
        theirs.close()


def _receive_settings(control: socket.socket) -> bytes:
    (length,) = LENGTH.unpack(control.recv(LENGTH.size, socket.MSG_WAITALL))
    return control.recv(length, socket.MSG_WAITALL)


def _load_jobs(settings: dict[str, Any]) -> Jobs:
    """Import and load everything that packages would load on first use."""
    stub_packages()
    loaders = Loaders(settings["media_io_kwargs"])
    grammars = Grammars(settings["vocabulary"]) if settings["vocabulary"] else None
    warm_up(loaders)
    if (num_threads := len(list(Path("/proc/self/task").iterdir()))) != 1:
        raise RuntimeError(f"a process of {num_threads} threads cannot be forked safely")
    return Jobs(loaders, grammars)


def _work(theirs: socket.socket, jobs: Jobs) -> None:
    """Run jobs in the forked worker until its socket is closed or something unforeseen happens.

    The first message brings the shared memory for inputs and outputs. Then the worker confines
    itself: from there on it can open and receive no descriptor.
    """
    try:
        head, fds, _, _ = socket.recv_fds(theirs, MAX_MESSAGE_BYTES, 2)
        if len(fds) == 2:
            content, output = _mapped(fds[0], mmap.ACCESS_READ), _mapped(fds[1], mmap.ACCESS_WRITE)
            confine(ResourceLimits(**json.loads(head)))
            while message := theirs.recv(MAX_MESSAGE_BYTES):
                request = json.loads(message)
                result = jobs.run(request, content[: request["num_bytes"]], output)
                theirs.send(json.dumps(result).encode())
    finally:
        os._exit(0)


def _mapped(fd: int, access: int) -> memoryview:
    content = memoryview(mmap.mmap(fd, os.fstat(fd).st_size, access=access))
    os.close(fd)
    return content


if __name__ == "__main__":
    # Ctrl-C goes to all processes of a terminal. The pool decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ConnectionError):
        serve(socket.socket(fileno=0))
