"""Room for drafts: in a step, in the cache, and of a request.

What nobody else needs is theirs. No request waits for the draft of another, nor for its own.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.request import Request, RequestStatus


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
        return max(0, min(self._num_tokens, self._num_blocks * self._block_size))

    def take(self, num_tokens: int) -> None:
        self._num_tokens -= num_tokens
        self._num_blocks -= ceil(num_tokens / self._block_size)


class DraftSlots:
    """Slots of the KV cache for the drafts of requests that are about to be admitted.

    vLLM lays out a new request before its draft is known, so the slots are taken beforehand, as
    vLLM's lookahead. But it sizes its pool without us: where layers have a sliding window, one
    request may fill the least pool that it starts with, and would wait for ever for slots that do
    not exist. So a draft's slots are taken where there are some left. Not thread-safe.
    """

    def __init__(self, manager: KVCacheManager, num_wanted: Callable[[Request], int]) -> None:
        """In a step that begins here ``manager`` takes its lookahead for a wish.

        ``num_wanted`` says of how many tokens a draft for a request may be.
        """
        self._manager, self._allocate = manager, manager.allocate_slots
        self._num_wanted = num_wanted
        self._reserved: dict[str, int] = {}

    def step_begins(self, num_draft_tokens: int, *, anyone_waits: bool) -> int:
        """What vLLM's lookahead is in this step: a draft's slots, if anyone may be admitted.

        If not, ``manager`` is left alone: in each step vLLM asks it for every request that runs.
        """
        self._manager.allocate_slots = self._allocate_slots if anyone_waits else self._allocate
        return num_draft_tokens if anyone_waits else 0

    def reserved(self, request_id: str) -> int:
        """For how many drafted tokens a request of this step has slots, beside its own."""
        return self._reserved.get(request_id, 0)

    def step_ended(self) -> None:
        self._reserved.clear()

    def _allocate_slots(
        self, request: Request, *args: Any, num_lookahead_tokens: int = 0, **kwargs: Any
    ) -> Any:
        # The draft of a request that runs is known: its tokens are among those to be computed.
        if num_lookahead_tokens and request.status == RequestStatus.WAITING:
            wanted = min(num_lookahead_tokens, self._num_wanted(request))
            if wanted > 0:
                blocks = self._allocate(request, *args, num_lookahead_tokens=wanted, **kwargs)
                if blocks is not None:
                    self._reserved[request.request_id] = wanted
                    return blocks
        return self._allocate(request, *args, **kwargs)
