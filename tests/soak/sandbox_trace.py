"""Traces the system calls of the sandbox's workers with strace.

The fork server and every worker that it forks are traced. Once a worker has installed its seccomp
filter, each call that would reach a file, a socket or a program is counted: those that the kernel
refused, and those that got through, of which there must be none.
"""

import contextlib
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.servers import Server

FORK_SERVER = "headstart_server.sandbox.fork_server"
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)")
# Workers receive jobs and send results on a socket that they were given.
_NEEDED = {"sendto", "sendmsg", "recvfrom", "prctl", "seccomp"}


@dataclass
class Traced:
    """The calls of all confined processes."""

    processes: int = 0
    got_through: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def told(self) -> dict[str, Any]:
        """For a result."""
        return {
            "confined_processes": self.processes,
            "calls_that_got_through": self.got_through[:50],
            "calls_refused": dict(self.refused),
        }


@contextlib.contextmanager
def traced(server: Server, log: Path) -> Iterator[Traced]:
    """Trace until the block is left; the yielded object is filled then."""
    found = Traced()
    program = shutil.which("strace")
    fork_servers = [child.pid for child in server.children() if FORK_SERVER in child.cmdline()]
    if program is None or not fork_servers:
        raise RuntimeError("needs strace and a server that decodes in a sandbox")
    command = [program, "-f", "-qq", "-e", "trace=%file,%network,%process,prctl,seccomp"]
    command += ["-e", "signal=none", "-o", str(log), "-p", str(fork_servers[0])]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
        try:
            yield found
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
    read(log.read_text(errors="replace").splitlines(), found)


def read(lines: list[str], found: Traced) -> None:
    """Sort strace's lines by process and count the calls after each was confined."""
    confined: set[str] = set()
    for line in lines:
        call = _CALL.match(line)
        if call is None:
            continue
        process, name, rest = call.groups()
        if name in ("prctl", "seccomp") and "SECCOMP" in rest and "FILTER" in rest:
            confined.add(process)
        elif process in confined and name not in _NEEDED | {"exit", "exit_group", "clone"}:
            if " = -1 " in rest or "<unfinished" in rest or "= ?" in rest:
                found.refused[name] += 1
            else:
                found.got_through.append(line[:300])
    found.processes += len(confined)
