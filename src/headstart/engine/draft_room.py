"""How many tokens of a request a step has to compute, and how many may be drafted for it."""

from collections.abc import Sequence
from math import ceil

from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.request import Request


def num_missing(request: Request) -> int:
    """How many tokens of a request are known and not computed: one of an answer under way."""
    missing: int = request.num_tokens - request.num_computed_tokens
    return missing


def num_wanted(request: Request) -> int:
    """How many tokens may be drafted, given that the step says one more of its own."""
    said, params = request.num_output_tokens, request.sampling_params
    wanted: int = request.max_tokens - said - 1
    if params is not None and said < params.min_tokens:
        # vLLM forbids that one token to end the answer as long as fewer than min_tokens were
        # confirmed before the step. So it must not lie beyond them.
        wanted = min(wanted, params.min_tokens - said - 1)
    return wanted


class DraftRoom:
    """What drafts may take of one step and of the cache: what nobody else in it needs.

    A token of every running request comes first, and a block for it. Of a step that also computes
    prompts drafts take a quarter at most. Otherwise a long draft of one request would keep the next
    from its own word, or put it back into the queue. Not thread-safe.
    """

    def __init__(self, manager: KVCacheManager, max_step_tokens: int) -> None:
        self._pool, self._max_step_tokens = manager.block_pool, max_step_tokens
        groups = manager.kv_cache_config.kv_cache_groups
        self._num_groups = max(1, len(groups))
        self._block_size = min((one.kv_cache_spec.block_size for one in groups), default=1)
        self._num_tokens = self._num_blocks = 0

    def step_begins(self, running: Sequence[Request], *, anyone_waits: bool) -> None:
        """A step of these requests is laid out, and perhaps of some that wait."""
        self._num_tokens = self._max_step_tokens - len(running)
        # Each request's own token may begin a block in every group.
        self._num_blocks = self._pool.get_num_free_blocks() // self._num_groups - len(running)
        if anyone_waits or any(request.is_prefill_chunk for request in running):
            self._num_tokens = min(self._num_tokens, self._max_step_tokens // 4)

    @property
    def num_tokens(self) -> int:
        """How long the next draft may be."""
        return max(0, min(self._num_tokens, self._num_blocks * self._block_size))

    def take(self, num_tokens: int) -> None:
        """So many tokens were drafted for a request."""
        self._num_tokens -= num_tokens
        self._num_blocks -= ceil(num_tokens / self._block_size)
