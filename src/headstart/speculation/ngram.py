"""Prompt lookup: drafts what followed the same words earlier in the prompt or the answer."""

from collections.abc import Sequence

from headstart.speculation.drafter import DraftRequest

MAX_MATCH = 4
MIN_MATCH = 2  # one token alone repeats by chance
MAX_LOOK_BACK = 512  # tokens: bounds the time of a proposal


class Ngram:
    """A `Drafter` without memory: the longest match wins, of equals the most recent."""

    name = "ngram"

    def __init__(self) -> None:
        self._prompts: dict[str, tuple[int, ...]] = {}

    def begin(self, request: DraftRequest) -> None:
        self._prompts[request.id] = request.prompt[-MAX_LOOK_BACK:]

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        prompt = self._prompts.get(request_id)
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

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._prompts.pop(request_id, None)
