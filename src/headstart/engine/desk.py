"""Where drafts wait for the scheduler: the engine process's side of drafting.

Owned by one scheduler and called from its thread only. A draft is a hint: whatever is handed
in, what comes out is text of the target's vocabulary that continues what is confirmed, or
nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.engine.text_ids import TextIds


class DraftDesk:
    """The drafts of the requests that are running."""

    def __init__(self, text: TextIds) -> None:
        self._text = text
        self._hints: dict[str, Sequence[Any]] = {}

    def open(self, request_id: str, details: object) -> None:
        """Begin a request; ``details`` may hold a ``draft`` of the whole answer."""
        hint = details.get("draft") if isinstance(details, Mapping) else None
        if isinstance(hint, Sequence) and not isinstance(hint, str | bytes):
            self._hints[request_id] = hint

    def draft(self, request_id: str, confirmed: Sequence[int], most: int) -> list[int]:
        """The best continuation of ``confirmed``, at most ``most`` tokens, or nothing."""
        hint = self._hints.get(request_id)
        if hint is None:
            return []
        # Where the target has said otherwise, the rest of the draft can still be right.
        return self._text.prefix(hint[len(confirmed) : len(confirmed) + max(most, 0)], most)

    def close(self, request_id: str) -> None:
        """Forget a request; one never opened is no error."""
        self._hints.pop(request_id, None)
