"""Prompt lookup: drafts what followed the same words earlier in the prompt or the answer."""

from array import array
from collections.abc import Sequence

from headstart.speculation.draft import Match
from headstart.speculation.drafter import DraftRequest

MAX_MATCH = 4
MIN_MATCH = 2  # one token alone repeats by chance
MAX_LOOK_BACK = 512  # tokens: bounds the time of a proposal


class Ngram:
    """A `Drafter` without memory: the longest match wins, of equals the most recent."""

    name = "ngram"

    def __init__(self) -> None:
        self._prompts: dict[str, array[int]] = {}

    def begin(self, request: DraftRequest) -> None:
        self._prompts[request.id] = array("i", request.prompt[-MAX_LOOK_BACK:])

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        prompt = self._prompts.get(request_id)
        if prompt is None or not confirmed:
            return ()
        text = (prompt + array("i", confirmed[-MAX_LOOK_BACK:]))[-MAX_LOOK_BACK:]
        data, stop, length = text.tobytes(), 0, MIN_MATCH
        # Where a few tokens do not occur again, more do not either.
        while length <= MAX_MATCH and (found := _latest(data, length, text.itemsize)):
            stop, length = found, length + 1
        return Match(text[stop : stop + max(0, max_tokens)], length - 1) if stop else ()

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._prompts.pop(request_id, None)


def _latest(data: bytes, length: int, width: int) -> int:
    """Where the last tokens end the last time before the end; 0 where they do not."""
    # Bytes are searched in C, many times as fast as tokens in Python.
    ending, stop = data[-length * width :], len(data) - width
    while (found := data.rfind(ending, 0, stop)) >= 0:
        if found % width == 0:
            return found // width + length
        stop = found + len(ending) - 1  # equal bytes, not equal tokens
    return 0
