"""Ctrl-C and SIGTERM while engines start.

A terminal's Ctrl-C reaches every process that was started from it; a service manager's SIGTERM
reaches one of them, or all.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

ENDED = 128 + signal.SIGTERM
"""The exit code of a command that was told to end while it started."""
_LISTEN_S = 0.2


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started in the block; either signal ends the block.

    A terminal sends SIGINT to all of them. vLLM's would print a traceback each, and an engine would
    end while its server still answers. What is blocked here is blocked in the threads and processes
    that are started here.

    The block ends with `SystemExit`: vLLM takes a KeyboardInterrupt that comes while its engine
    loads for nothing, and then waits ten minutes for an engine that may be gone.
    """
    resource_tracker.ensure_running()  # else the first process brings it along, and it unblocks
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGTERM, _end)
    left = threading.Event()
    listener = threading.Thread(target=_listen, args=(left,), name="interrupts", daemon=True)
    listener.start()
    try:
        yield
    finally:
        left.set()
        listener.join()
        if signal.getsignal(signal.SIGTERM) is _end:
            signal.signal(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # told twice, an ending goes on
    # vLLM's seconds of grace, which an engine needs to save its work: one that loads hears nothing.
    os.environ["VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS"] = "1"
    raise SystemExit(ENDED)


def _listen(left: threading.Event) -> None:
    """Pass Ctrl-C on to the main thread as SIGTERM, which is not kept from it."""
    while not left.is_set():
        if signal.sigtimedwait({signal.SIGINT}, _LISTEN_S) is not None:
            os.kill(os.getpid(), signal.SIGTERM)
