"""A source that is wrong at every pass, and always has something to say.

For measuring what drafting costs where it cannot pay, on a real engine: nobody else would have it.
"""

from collections.abc import Sequence

from headstart.drafters.port import Ask

FIRST_ID, NUM_IDS = 3, 61  # ordinary text in every vocabulary of Llama's kind


class Rehearsal:
    """A `Drafter` without a clue. Now and then it is right by chance, as a wrong one would be."""

    name = "rehearsal"

    def __init__(self) -> None:
        self._requests: set[str] = set()

    def begin(self, ask: Ask) -> None:
        """See `Drafter`."""
        self._requests.add(ask.request)

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """See `Drafter`."""
        if request not in self._requests:
            return ()
        start = 7 * len(confirmed)
        return [FIRST_ID + (start + 11 * place) % NUM_IDS for place in range(max_tokens)]

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """See `Drafter`."""
        self._requests.discard(request)
