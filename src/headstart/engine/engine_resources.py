"""What one engine gets of the machine that it starts on, and whether its KV cache fits there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headstart.doctor.findings import computes_on_cpu
from headstart.doctor.host_facts import memory_bytes
from headstart.engine.model import CPU_KV_CACHE_BYTES
from headstart.errors import EngineStartError

_KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_MAX_KERNELS = 128
_GIB = 2**30
ARGUMENT = "kv_cache_memory_bytes"
VARIABLE = "VLLM_CPU_KVCACHE_SPACE"


@dataclass(frozen=True)
class EngineResources:
    """One engine's part of the machine: environment variables, and vLLM arguments to add."""

    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    """The only ones its process may use; none where it may use them all."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Set the environment while the engine is started: vLLM reads it then."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def few_kernels(environment: Mapping[str, str]) -> EngineResources:
    """Keep an engine on a CPU from growing by half a gigabyte and more as it verifies drafts.

    oneDNN compiles a kernel for each width of a batch and keeps 1,024 of them unless told
    otherwise; with drafts almost every pass has another width.
    """
    return (
        EngineResources()
        if _KERNELS in environment
        else EngineResources({_KERNELS: str(_MAX_KERNELS)})
    )


def check_cache_room(
    vllm: Mapping[str, Any], environment: Mapping[str, str], num_engines: int = 1
) -> None:
    """Raise where ``num_engines`` with these arguments of vLLM's want more than is available.

    vLLM asks the same question, after it has loaded the model and tried it out. On a GPU the answer
    is vLLM's alone.
    """
    if not computes_on_cpu():
        return
    each, name = _asked(vllm, environment)
    num_engines *= int(vllm.get("data_parallel_size") or 1)
    total, free = memory_bytes()
    if not total or num_engines * each <= free:
        return
    caches = "a KV cache" if num_engines == 1 else f"{num_engines} KV caches"
    raise EngineStartError(
        f"{caches} of {each / _GIB:.1f} GiB do{'es' if num_engines == 1 else ''} not fit:"
        f" {free / _GIB:.1f} of this machine's {total / _GIB:.1f} GiB of memory are available. Ask"
        f" for less, e.g. {name}"
    )


def _asked(vllm: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[int, str]:
    """The bytes of one engine's cache, and how to ask for a GiB; vLLM hears the variable first."""
    if (given := environment.get(VARIABLE, "")).isdecimal():
        return int(given) * _GIB, f"{VARIABLE}=1 (GiB)"
    asked = vllm.get(ARGUMENT)
    each = asked if isinstance(asked, int) else CPU_KV_CACHE_BYTES
    return each, f"--vllm {ARGUMENT}={_GIB} (bytes)"
