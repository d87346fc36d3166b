"""A stream has one rank, in every process; streams are spread over all ranks."""

import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

from headstart.engine.engine_client import data_parallel_rank, rank_of
from headstart.speculation.drafter import StreamKey

KEYS = [StreamKey(tenant, f"camera-{n}") for tenant in ("", "north") for n in range(500)]


def test_another_process_finds_the_same_rank():
    program = (
        "from headstart.speculation.drafter import StreamKey\n"
        "from headstart.engine.engine_client import rank_of\n"
        "print([rank_of(StreamKey('north', f'camera-{n}'), 4) for n in range(20)])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert told.strip() == str([rank_of(StreamKey("north", f"camera-{n}"), 4) for n in range(20)])


def test_streams_are_spread_evenly():
    for size in (2, 3, 8):
        counts = Counter(rank_of(key, size) for key in KEYS)
        assert set(counts) == set(range(size))
        assert min(counts.values()) > 0.7 * len(KEYS) / size


def test_tenant_and_stream_both_count():
    assert (
        len({rank_of(StreamKey("north", "c"), 2**40), rank_of(StreamKey("south", "c"), 2**40)}) == 2
    )
    assert rank_of(StreamKey("a", "bc"), 2**40) != rank_of(StreamKey("ab", "c"), 2**40)


def test_half_a_character_in_a_name_is_no_error():
    assert rank_of(StreamKey("", "\ud800"), 2) in (0, 1)


def parallel(size: int, local: int, local_only: bool = False) -> SimpleNamespace:
    """The fields of vLLM's parallel config that are read."""
    return SimpleNamespace(
        data_parallel_size=size, data_parallel_size_local=local, local_engines_only=local_only
    )


def test_vllm_chooses_where_there_is_no_stream_or_one_engine():
    key = KEYS[0]
    assert data_parallel_rank(None, parallel(4, 4)) is None
    assert data_parallel_rank(key, parallel(1, 1)) is None
    assert data_parallel_rank(key, parallel(4, 2)) == rank_of(key, 4)
    assert data_parallel_rank(key, parallel(4, 2, local_only=True)) == rank_of(key, 2)
