"""A drafter that is wrong at every pass, and always drafts as much as it may.

It measures what drafting costs where it cannot pay, on a real engine.
"""

from collections.abc import Sequence

from headstart.drafters.registry import Registration
from headstart.speculation.drafter import DraftRequest

FIRST_ID, NUM_IDS = 3, 61  # ordinary text in every vocabulary of Llama's kind


class AlwaysWrong:
    """A `Drafter` that guesses blindly; now and then a token is right by chance."""

    name = "wrong"

    def __init__(self) -> None:
        self._requests: set[str] = set()

    def begin(self, request: DraftRequest) -> None:
        self._requests.add(request.id)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        if request_id not in self._requests:
            return ()
        start = 7 * len(confirmed)
        return [FIRST_ID + (start + 11 * place) % NUM_IDS for place in range(max_tokens)]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._requests.discard(request_id)


REGISTRATION = Registration(
    AlwaysWrong.name,
    "nothing: it measures what drafting costs where it cannot pay",
    lambda *_: AlwaysWrong(),
)
