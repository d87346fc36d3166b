"""The process of an event model: started, watched, started again, and ended with its parent.

``python -m headstart_events.beside.process SPEC`` is what runs in it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name

from headstart.errors import EngineStartError
from headstart_events.beside.spec import EventModelSpec

_PR_SET_PDEATHSIG = 1
FIRST_PAUSE_S = 1.0
YIELDING = 19  # the lowest priority
LONGEST_PAUSE_S = 60.0


class EventModelProcess:
    """Keeps one event model running; starts it again when it dies, after a pause that doubles.

    One thread starts the process and waits for its end. Linux kills the process when that thread
    is gone, and so when this process is, however it ended.
    """

    def __init__(self, spec: EventModelSpec, environment: Mapping[str, str]) -> None:
        self._model, self._argument = spec.model, spec.argument()
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._ready_pid: int | None = None
        self._num_deaths = 0
        self._thread = threading.Thread(target=self._watch, name="drafter", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def ready(self, pid: int) -> None:
        with self._changed:
            self._ready_pid = pid
            self._changed.notify_all()

    @property
    def is_ready(self) -> bool:
        """Whether the process that runs now has said so."""
        return self._ready_pid is not None and self._ready_pid == self.pid

    def wait_ready(self, timeout_s: float) -> None:
        """Return when its engine is up; raise if it has died, or takes longer."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.is_ready or self._num_deaths > 0, timeout_s)
            if not done or not self.is_ready:
                state = "ended" if done else f"was not up after {timeout_s:.0f} s"
                raise EngineStartError(
                    f"The drafter {self._model} {state}. vLLM's messages say why;"
                    " without a drafter the target answers the same."
                )

    def close(self) -> None:
        """End it, stopped or not, and start it no more."""
        self._closing.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
        self._thread.join()

    def _watch(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            self._process = process = self._started()
            if self._closing.is_set():
                process.kill()
            process.wait()
            with self._changed:
                if self._ready_pid == process.pid:
                    pause_s = FIRST_PAUSE_S  # it had worked
                self._num_deaths += 1
                self._changed.notify_all()
            self._closing.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", __name__, self._argument, str(os.getpid())]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            # The terminal's stdout is for the answer: what vLLM prints goes to stderr.
            stdout=sys.stderr.fileno() if _has_descriptor() else None,
            env={**os.environ, **self._environment},
        )


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


def die_with(parent: int) -> None:
    """Ask Linux to kill this process when the thread that started it is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)  # it went before we could ask


def main() -> None:
    die_with(int(sys.argv[2]))
    spec = EventModelSpec.parse(sys.argv[1])
    if spec.cores:
        os.sched_setaffinity(0, spec.cores)  # before anything starts a thread
    # The engine in this very process: one thing to watch, and no message between it and us.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the parent to handle
    engine = resolve_name(spec.engine)(spec)
    if spec.cores:
        # The target's front end and scheduler use these cores too, and never wait for a drafter.
        # Not while it loads: a person waits for that.
        _give_way()
    engine.run()


def _give_way() -> None:
    """Lower the priority of this process: on Linux each thread has its own."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, int(thread.name), YIELDING)


if __name__ == "__main__":
    main()
