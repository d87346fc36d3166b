"""Whether the KV caches that are asked for fit this machine's memory, where the CPU computes.

vLLM asks the same question, after it has loaded the model and tried it out. On a GPU the answer is
vLLM's alone.
"""

from collections.abc import Mapping
from typing import Any

from headstart.doctor.findings import computes_on_cpu
from headstart.doctor.host_facts import memory_bytes
from headstart.engine.model import CPU_KV_CACHE_BYTES
from headstart.errors import EngineStartError

_GIB = 2**30
ARGUMENT = "kv_cache_memory_bytes"
VARIABLE = "VLLM_CPU_KVCACHE_SPACE"


def check_cache_room(
    vllm: Mapping[str, Any], environment: Mapping[str, str], num_engines: int = 1
) -> None:
    """Raise where ``num_engines`` with these arguments of vLLM's want more than is available."""
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
