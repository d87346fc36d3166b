"""A KV cache that cannot fit is refused before anything is loaded."""

import pytest

from headstart.doctor.findings import computes_on_cpu
from headstart.doctor.host_facts import memory_bytes
from headstart.engine.engine_resources import check_cache_room
from headstart.errors import EngineStartError

pytestmark = pytest.mark.skipif(not computes_on_cpu(), reason="a GPU's memory is vLLM's to judge")
GIB = 2**30


@pytest.mark.parametrize(
    ("vllm", "environment", "says"),
    [
        ({"kv_cache_memory_bytes": 900_000_000_000}, {}, "a KV cache of 838.2 GiB does not fit"),
        ({}, {"VLLM_CPU_KVCACHE_SPACE": "900"}, "a KV cache of 900.0 GiB does not fit"),
        # As vLLM has it, the variable counts.
        ({"kv_cache_memory_bytes": GIB}, {"VLLM_CPU_KVCACHE_SPACE": "900"}, "=1 (GiB)"),
        ({"data_parallel_size": 900, "kv_cache_memory_bytes": GIB}, {}, "900 KV caches of 1.0"),
    ],
)
def test_one_too_large_is_refused_with_the_numbers(vllm, environment, says):
    with pytest.raises(EngineStartError) as error:
        check_cache_room(vllm, environment)
    assert says in str(error.value)
    total, _ = memory_bytes()
    assert f"of this machine's {total / GIB:.1f} GiB of memory are available" in str(error.value)


def test_one_that_fits_is_not():
    check_cache_room({"kv_cache_memory_bytes": 1 << 20}, {})
    check_cache_room({}, {"VLLM_CPU_KVCACHE_SPACE": "0"})


@pytest.mark.engine
def test_an_engine_is_refused_before_it_starts(tiny_target):
    from headstart import Headstart

    vllm = {"kv_cache_memory_bytes": 900_000_000_000, "no such argument": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VLLM_CPU_KVCACHE_SPACE")
        with pytest.raises(EngineStartError, match="does not fit"):
            Headstart(tiny_target, vllm=vllm)


@pytest.mark.engine
def test_what_is_read_of_the_installation_is_what_vllm_finds():
    from vllm.platforms import current_platform

    assert computes_on_cpu() == current_platform.is_cpu()
