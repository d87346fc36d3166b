"""How much of a caller's prediction the answer followed."""

from collections.abc import Sequence

from headstart.speculation.board import MAX_DRAFT_TOKENS, MAX_RESYNC_TOKENS, DraftBoard
from headstart.speculation.draft import Draft
from headstart.speculation.vocabulary import TextVocabulary

# Which ids are text was decided before; here any id may be compared.
_ANY_ID = TextVocabulary(2**63)


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
