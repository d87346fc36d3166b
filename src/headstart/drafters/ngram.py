"""Words the request itself already holds: what followed the same words in its prompt or answer."""

from collections.abc import Sequence

from headstart.drafters.port import Ask

MAX_MATCH = 4
MIN_MATCH = 2  # one token alone repeats by chance
MAX_LOOK_BACK = 512  # tokens: bounds the time of a proposal


class Ngram:
    """A `Drafter` without memory: the longest match wins, of equals the most recent."""

    name = "ngram"

    def __init__(self) -> None:
        self._prompts: dict[str, tuple[int, ...]] = {}

    def begin(self, ask: Ask) -> None:
        """See `Drafter`."""
        self._prompts[ask.request] = ask.prompt[-MAX_LOOK_BACK:]

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """See `Drafter`."""
        prompt = self._prompts.get(request)
        if prompt is None or not confirmed:
            return ()
        text = (*prompt, *confirmed)[-MAX_LOOK_BACK:]
        best_length, best = MIN_MATCH - 1, 0
        last = text[-1]
        for stop in range(len(text) - 1, 0, -1):
            if text[stop - 1] != last:
                continue
            most = min(MAX_MATCH, stop)
            length = 1
            while length < most and text[stop - 1 - length] == text[-1 - length]:
                length += 1
            if length > best_length:
                best_length, best = length, stop
                if length == MAX_MATCH:
                    break
        return text[best : best + max(0, max_tokens)] if best else ()

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """See `Drafter`."""
        self._prompts.pop(request, None)
