"""Which data-parallel rank answers a stream: always the same one, because its memory is there.

vLLM runs one engine for each rank and sends each request to the least busy one. Each engine has a
scheduler of its own, and so a memory of its own.
"""

import hashlib
import json
from typing import Any

from headstart.speculation.drafter import StreamKey


def rank_of(stream: StreamKey, num_ranks: int) -> int:
    """The stream's rank: the same in every process, streams spread evenly over the ranks."""
    name = json.dumps([stream.tenant, stream.stream]).encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8]) % num_ranks


def data_parallel_rank(stream: StreamKey | None, parallel_config: Any) -> int | None:
    """What vLLM's ``generate`` is told; none leaves the choice to vLLM."""
    local = parallel_config.local_engines_only
    size = parallel_config.data_parallel_size_local if local else parallel_config.data_parallel_size
    return rank_of(stream, size) if stream is not None and size > 1 else None
