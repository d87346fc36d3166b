"""A Python command in a process forked from one that has imported vLLM already.

What runs is what `python -c CODE WORDS` or `python -m MODULE WORDS` runs, with standard streams and
an environment of its own; it is only sooner at its first line. Importing vLLM's server takes 12 s
of a core.
"""

import atexit
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rig.engine_starts import start_by_fork_server


class ForkedCommand:
    """Started when it is made; then the part of `subprocess.Popen` that the tests of servers use.

    ``command`` is what stands behind `python`. All that it prints goes to ``log``.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        start_by_fork_server()
        self._process = multiprocessing.get_context("forkserver").Process(
            target=_run, args=(tuple(command), dict(environment), str(log))
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("a forked command", timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def last_line_of(command: Sequence[str], log: Path, timeout_s: float = 1800.0) -> dict[str, Any]:
    """The JSON with which a command ends, as all of ours do that measure something."""
    status = ForkedCommand(command, os.environ, log).wait(timeout_s)
    said = log.read_text(errors="replace")
    assert status == 0, said[-4000:]
    # An engine may say something after it.
    line = next(line for line in reversed(said.splitlines()) if line.startswith("{"))
    found: dict[str, Any] = json.loads(line)
    return found


def _run(command: Sequence[str], environment: Mapping[str, str], log: str) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    # Only what differs: vLLM's processes find their own command line, to name themselves there,
    # by where the variables lie that they were started with.
    for gone in os.environ.keys() - environment.keys():
        del os.environ[gone]
    os.environ.update(dict(environment.items() - os.environ.items()))
    option, code, *words = command
    sys.argv = [option, *words]
    try:
        if option == "-m":
            runpy.run_module(code, run_name="__main__", alter_sys=True)
        else:
            exec(code, {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()  # a forked process leaves them out
