"""Ctrl-C on a terminal, which reaches every process that was started from it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started in the block: this one ends them in order.

    A terminal sends SIGINT to all of them. vLLM's would print a traceback each, and an engine would
    end while its server still answers. What is blocked here is blocked in the threads and processes
    that are started here. A Ctrl-C that comes meanwhile counts when the block is left, or when
    SIGINT is unblocked before.
    """
    resource_tracker.ensure_running()  # else the first process brings it along, and it unblocks
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
