"""The answer a client expects: OpenAI's ``prediction`` field, as tokens of the target.

It becomes a draft of the whole answer. The answer says in its ``usage`` how much of the prediction
it followed.
"""

import copy
from collections.abc import Sequence
from threading import Lock
from typing import Any

from headstart.speculation.board import (
    MAX_DRAFT_TOKENS,
    MAX_RESYNC_TOKENS,
    DraftBoard,
    TextVocabulary,
)
from headstart.speculation.draft import Draft

MAX_CHARACTERS = 16 * MAX_DRAFT_TOKENS  # what lies beyond is not tokenised
_ANCHOR = "\n"
# Which ids are text was decided before; here any id may be compared.
_ANY_ID = TextVocabulary(2**63)


class Tokenizing:
    """The target's tokenizer, for texts that the target may say. Safe to use from threads."""

    def __init__(self, tokenizer: Any) -> None:
        # Tokenizers are not thread-safe, and vLLM uses its own at the same time.
        self._tokenizer = copy.deepcopy(tokenizer)
        self._turn = Lock()

    def tokens(self, text: str, is_structured: bool) -> tuple[int, ...]:
        """The ids of an answer that reads ``text``, `MAX_DRAFT_TOKENS` of them at most.

        Llama's tokenizers begin a text with the mark of a word. So does an answer, in words; its
        text then begins with a space, which people leave out. A grammar allows no such mark.
        """
        text = text[:MAX_CHARACTERS]
        with self._turn:
            if is_structured or text[:1].isspace():
                ids = self._after_anchor(text)
            else:
                ids = self._encoded(text)
        return tuple(ids[:MAX_DRAFT_TOKENS])

    def _after_anchor(self, text: str) -> list[int]:
        """The ids of exactly this text, without a mark that the tokenizer would begin with."""
        anchor, whole = self._encoded(_ANCHOR), self._encoded(_ANCHOR + text)
        if whole[: len(anchor)] == anchor:
            return whole[len(anchor) :]
        return self._encoded(text)  # the anchor became one token with what follows it

    def _encoded(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def predicted_usage(prediction: tuple[int, ...], answer: list[int]) -> dict[str, int]:
    """What OpenAI's ``usage.completion_tokens_details`` says of a prediction."""
    accepted = num_followed(prediction, answer)
    return {
        "accepted_prediction_tokens": accepted,
        "rejected_prediction_tokens": len(prediction) - accepted,
    }


def num_followed(predicted: Sequence[int], said: Sequence[int]) -> int:
    """How many tokens of a prediction the answer ``said`` followed, each counted once.

    The answer follows a prediction from its first token on. Where it leaves it, a `DraftBoard`
    says where in the prediction it goes on: after a repetition of `MIN_RESYNC_TOKENS`. Only the
    first `MAX_DRAFT_TOKENS` of a prediction are read.
    """
    tokens = tuple(predicted[:MAX_DRAFT_TOKENS])
    board = DraftBoard(_ANY_ID)
    board.post(Draft(tokens, "prediction", 0.0))
    followed: set[int] = set()
    place: int | None = 0
    for at, token in enumerate(said):
        if place is None:
            rest = board.propose(said[max(0, at - MAX_RESYNC_TOKENS) : at], len(tokens)).tokens
            place = len(tokens) - len(rest)
        if place < len(tokens) and tokens[place] == token:
            followed.add(place)
            place += 1
        else:
            place = None
    return len(followed)
