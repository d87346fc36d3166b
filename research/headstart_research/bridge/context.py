"""What a bridge reads before it speaks: earlier answers of the stream, and the question.

The order is fixed: earlier answers, oldest first, then the question, then the answer. Features of
the clip stand beside the sequence; only the answer looks at them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.pooling import at_most
from headstart_research.bridge.vocabulary import OTHER, QUESTION, SAME, DraftVocabulary

NO_TOKEN = -1
NUM_MATCHES = 7
"""Lengths of a match of memory's, by powers of two; 0 is none."""
MIN_SAME = 2
"""Of the answers that are quoted, the last so many are to the same question, however old."""


@dataclass(frozen=True, eq=False, slots=True)
class EarlierAnswer:
    """An answer of the same stream."""

    question: str
    own_ids: NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """Tokens to read, and after each of an earlier answer the one that followed it there."""

    own_ids: NDArray[np.int32]
    followed_by: NDArray[np.int32]
    """`NO_TOKEN` where nothing can be quoted."""


def match_kind(match: int) -> int:
    """Of a match of so many tokens."""
    return min(match.bit_length(), NUM_MATCHES - 1)


def quotable(
    history: Sequence[EarlierAnswer], question: str, max_answers: int
) -> list[EarlierAnswer]:
    """Which answers of a stream, oldest first, are read: the newest, some to the same question."""
    places = range(len(history) - 1, -1, -1)
    same = [place for place in places if history[place].question == question][:MIN_SAME]
    newest = [place for place in places if place not in same]
    return [history[place] for place in sorted((same + newest)[:max_answers])]


def read_context(
    config: BridgeConfig,
    vocabulary: DraftVocabulary,
    history: Sequence[EarlierAnswer],
    question: str,
    prompt: Sequence[int],
) -> Context:
    """``prompt`` are the target's ids of the question, as its prompt ends."""
    pieces: list[NDArray[np.int32]] = []
    followed: list[NDArray[np.int32]] = []
    nothing = np.array([NO_TOKEN], np.int32)
    for answer in quotable(history, question, config.max_answers):
        said = answer.own_ids[: config.max_answer_tokens]
        mark = vocabulary.mark(SAME if answer.question == question else OTHER)
        pieces.append(np.concatenate([np.array([mark], np.int32), said]))
        followed.append(np.concatenate([said, nothing]))
    asked = vocabulary.own(prompt[-config.max_question_tokens :])
    pieces.append(np.concatenate([np.array([vocabulary.mark(QUESTION)], np.int32), asked]))
    followed.append(np.full(1 + len(asked), NO_TOKEN, np.int32))
    own_ids, followed_by = np.concatenate(pieces), np.concatenate(followed)
    followed_by[followed_by == len(vocabulary)] = NO_TOKEN  # a word it cannot say
    return Context(own_ids, followed_by)


def fitted(feature: FeatureSize, tokens: NDArray[np.float16]) -> NDArray[np.float32]:
    """A feature's tokens with unit mean square, no more than the bridge has places for."""
    seen = at_most(tokens, feature.max_tokens)
    scale = np.sqrt(np.square(seen).mean(axis=1, keepdims=True) + 1e-6)
    fit: NDArray[np.float32] = seen / scale
    return fit
