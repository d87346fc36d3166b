"""Starts the engines of tests from a process that has imported vLLM already.

vLLM starts an engine's process with ``spawn`` on CPUs, and importing vLLM takes 12 s of a core. A
fork server imports it once for all engines and servers of a test process. They are the real
ones. Commands and servers fork their engines (`quick_starts`); README's `headstart ask`
starts them vLLM's own way.
"""

import multiprocessing
from functools import cache
from multiprocessing import forkserver

PRELOADED = (
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.executor.multiproc_executor",
    "vllm.entrypoints.openai.api_server",
    "headstart.engine.scheduler",
    "headstart.models.registration",
    "headstart_server.server",
    "rig.frozen_heap",
)


@cache
def start_by_fork_server() -> None:
    """From now on, in this process."""
    import vllm.v1.engine.utils
    import vllm.v1.executor.multiproc_executor

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    forkserver.ensure_running()  # before any test counts processes
    for module in (vllm.v1.engine.utils, vllm.v1.executor.multiproc_executor):
        module.get_mp_context = lambda: context
