"""What Python runs at the start of each process that the tests start, where it is on PYTHONPATH.

On CPUs vLLM imports itself anew in every process of an engine, 15 s of a core each, and an engine
without work looks for some on a whole core for a second. Here an engine's processes are forked, as
vLLM does where it finds a GPU, and sleep after some milliseconds. So a bench need not wait for that
second before it asks the next engine.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # as typing's own, which takes 10 ms to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

AWAKE_S = 0.02


def fork(module: ModuleType) -> None:
    """vllm.utils.system_utils: how an engine's processes are started."""
    import multiprocessing

    module.get_mp_context = lambda: multiprocessing.get_context("fork")  # type: ignore[attr-defined]


def sleep_soon(module: ModuleType) -> None:
    """vllm.distributed.device_communicators.shm_broadcast: how they wait for each other."""
    module.SpinCondition.__init__.__defaults__ = (AWAKE_S,)


def rest_not(module: ModuleType) -> None:
    """headstart_research.bench.run: how long an engine is left alone after another was asked."""
    module.REST_S = 0.0  # type: ignore[attr-defined]


CHANGES = {
    "headstart_research.bench.run": rest_not,
    "vllm.utils.system_utils": fork,
    "vllm.distributed.device_communicators.shm_broadcast": sleep_soon,
}


class ChangedAsImported:
    """Finds the modules of `CHANGES`, and changes each as soon as it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Where the module is; nothing for all others."""
        if fullname not in CHANGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_change(module: ModuleType) -> None:
                run(module)
                CHANGES[fullname](module)

            spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, ChangedAsImported())  # type: ignore[arg-type]
