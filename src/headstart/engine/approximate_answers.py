"""Approximate answers in the scheduler, each a draft of the exact answer to the same question.

The approximate request begins first and has a short prompt. What it has said by the time the exact
one's prompt is computed is verified with that prompt, as any draft is. Nobody learns from it.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence

from headstart.engine.request_tags import RequestTags
from headstart.speculation.draft import Draft

SOURCE = "approximate"
"""Of the drafts."""
MAX_UNCLAIMED = 64  # beyond this the oldest preview is none: its exact request never came


class ApproximateAnswers:
    """What approximate requests have said so far, for the exact ones. Not thread-safe."""

    def __init__(self) -> None:
        self._previews: set[str] = set()
        self._unclaimed: OrderedDict[tuple[str, str], Sequence[int]] = OrderedDict()
        """By tenant and name of an exact request that is still on its way."""
        self._claimed: dict[str, Sequence[int]] = {}

    def begin(self, request_id: str, tags: RequestTags, said: Sequence[int]) -> None:
        """A request exists, approximate or exact; ``said`` grows with its answer."""
        if tags.preview_of:
            self._previews.add(request_id)
            self._unclaimed[tags.tenant, tags.preview_of] = said
            if len(self._unclaimed) > MAX_UNCLAIMED:
                self._unclaimed.popitem(last=False)
        elif (found := self._unclaimed.pop((tags.tenant, tags.name), None)) is not None:
            self._claimed[request_id] = found

    def is_preview(self, request_id: str) -> bool:
        """Whether it is an approximate request that an exact one verifies."""
        return request_id in self._previews

    def draft(self, request_id: str) -> Draft | None:
        """What was said in advance of an exact request's answer, if anything was."""
        said = self._claimed.get(request_id)
        return Draft(tuple(said), SOURCE, time.monotonic()) if said else None

    def forget(self, request_id: str) -> None:
        """The request has ended, or begins anew. What a preview said stays for its exact one."""
        self._previews.discard(request_id)
        self._claimed.pop(request_id, None)
