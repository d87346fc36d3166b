"""Slots of the KV cache for the drafts of requests that are about to be admitted.

vLLM lays out a new request before its draft is known, so the slots are taken beforehand, as vLLM's
lookahead. But it sizes its pool without us: where layers have a sliding window, one request may
fill the least pool that it starts with, and would wait for ever for slots that do not exist. So a
draft's slots are taken where there are some left, and no request waits for them.
"""

from collections.abc import Callable
from typing import Any

from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.request import Request, RequestStatus


class DraftSlots:
    """The requests of one step that have slots for a draft. Not thread-safe."""

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
        """The step is laid out."""
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
