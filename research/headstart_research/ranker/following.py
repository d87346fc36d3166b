"""Word after word: drafting how an answer may go on, and learning from one that is complete."""

import numpy as np
from numpy.typing import NDArray

from headstart_research.compilation import compiled
from headstart_research.ranker.arrays import (
    CONTEXT_LENGTHS,
    LAST_WORD,
    NUM_LENGTHS,
    Arrays,
    slot_of_context,
)
from headstart_research.ranker.network import (
    NUM_WEIGHTS,
    add_gradient,
    score,
    step,
    workspace,
)
from headstart_research.ranker.places import MAX_WORDS, Asked, hear, listen, look, new_view


@compiled
def follow(
    arrays: Arrays,
    weights: NDArray[np.float32],
    asked: Asked,
    said: NDArray[np.int32],
    max_tokens: int,
) -> tuple[NDArray[np.int32], int]:
    """Draft after ``said``, each word the best after those before it.

    Returns also how many of the last words were found before the first drafted one.
    """
    words = np.empty(len(said) + max_tokens, dtype=np.int32)
    words[: len(said)] = said
    chains = np.empty(NUM_LENGTHS, dtype=np.int64)
    view = new_view()
    attention, hidden, scores = workspace()
    heard = listen(arrays, asked)
    for stop in range(1, len(said)):
        chain = arrays.heads[LAST_WORD, slot_of_context(arrays, words, stop, 1)]
        hear(arrays, asked, asked.number, words, stop, chain, heard)
    stop, match = len(said), 0
    while stop < len(words):
        for kind in range(NUM_LENGTHS):
            length = CONTEXT_LENGTHS[kind]
            chains[kind] = -1
            if length <= stop:
                slot = slot_of_context(arrays, words, stop, length)
                chains[kind] = arrays.heads[kind, slot]
        hear(arrays, asked, asked.number, words, stop, chains[LAST_WORD], heard)
        num_places, num_words, longest = look(
            arrays, asked, asked.number, heard, words, stop, chains, view
        )
        if stop == len(said):
            match = longest
        if num_words == 0:
            break
        best = 0
        if num_words > 1:
            score(weights, view, num_places, num_words, attention, hidden, scores)
            for word in range(1, num_words):
                if scores[word] > scores[best]:
                    best = word
        words[stop] = view.words[best]
        stop += 1
    return words[len(said) : stop], match


@compiled
def learn(
    arrays: Arrays,
    number: int,
    num_answers: int,
    weights: NDArray[np.float32],
    means: NDArray[np.float32],
    squares: NDArray[np.float32],
    num_steps: int,
    rate: float,
) -> int:
    """Take one step towards the words of an answer, quoting only those before it.

    Returns how many choices there were; where there were none, nothing changes.
    """
    stream, turn = int(np.int64(arrays.streams[number])), int(np.int64(arrays.turns[number]))
    asked = Asked(number, stream, turn)
    start = arrays.starts[number]
    said = arrays.tokens[start : arrays.starts[number + 1]]
    chains = np.empty(NUM_LENGTHS, dtype=np.int64)
    errors = np.empty(MAX_WORDS, dtype=np.float32)
    gradient = np.zeros(NUM_WEIGHTS, dtype=np.float32)
    view = new_view()
    attention, hidden, scores = workspace()
    heard = listen(arrays, asked)
    num_choices = 0
    for stop in range(1, len(said)):
        for kind in range(NUM_LENGTHS):
            chains[kind] = arrays.back[kind, start + stop]
        hear(arrays, asked, num_answers, said, stop, chains[LAST_WORD], heard)
        num_places, num_words, _ = look(arrays, asked, num_answers, heard, said, stop, chains, view)
        truth = -1
        for word in range(num_words):
            if view.words[word] == said[stop]:
                truth = word
        if truth < 0 or num_words < 2:
            continue
        score(weights, view, num_places, num_words, attention, hidden, scores)
        top = scores[0]
        for word in range(1, num_words):
            top = max(top, scores[word])
        total = np.float32(0)
        for word in range(num_words):
            errors[word] = np.exp(scores[word] - top)
            total += errors[word]
        for word in range(num_words):
            errors[word] = errors[word] / total - (word == truth)
        add_gradient(weights, view, num_places, num_words, attention, hidden, errors, gradient)
        num_choices += 1
    if num_choices:
        for place in range(NUM_WEIGHTS):
            gradient[place] /= num_choices
        step(weights, gradient, means, squares, num_steps, rate)
    return num_choices
