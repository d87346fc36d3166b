"""What may come next: the places where the last words were said before, and what speaks for each.

A place is described by numbers (`PLACE_TRAITS`), and votes for the word that follows it. A word is
described by further ones (`WORD_TRAITS`). Which of them count, and how much, the network learns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart_research.compilation import compiled
from headstart_research.ranker.arrays import (
    CONTEXT_LENGTHS,
    LAST_WORD,
    NUM_COMMON,
    NUM_LENGTHS,
    Arrays,
    count_common,
    slot_of_token,
)

MAX_PLACES_OF = (32, 32, 24, 24)  # by length of context, the most recent ones
MAX_PLACES = 112
MAX_STEPS = 160  # along one chain: bounds the time
MAX_WORDS = 16  # to choose from
MAX_MATCH = 32
MAX_BEYOND = 16  # tokens that match beyond one that does not
MAX_MENTIONS = 512  # places of a word, looked up for the answers that say it
NUM_RECENT = 8  # answers whose words are told apart
RECENT_SLOTS = 1 << 12
PLACE_TRAITS = 32
NUM_HEADS = 8
NUM_SHARES = 2 * NUM_HEADS  # the first traits of a word are of the network's making
WORD_TRAITS = NUM_SHARES + 20
LONGEST = NUM_SHARES + 5  # the trait of the word that memory would choose
LOGS = np.log1p(np.arange(4096)).astype(np.float32)


class Asked(NamedTuple):
    """The answer that is to be continued."""

    number: int
    """It quotes answers of smaller numbers."""
    stream: int
    turn: int


class Heard(NamedTuple):
    """What is known of the words said so far; made by `listen`, extended by `hear`."""

    counts: NDArray[np.uint8]
    """Of the common tokens."""
    overlaps: NDArray[np.float32]
    """Of each earlier answer, the weight of those words that it says too."""
    weights: NDArray[np.float32]
    """Of all words, and of those in the answer with most."""
    recent: NDArray[np.uint8]
    """By hash of a token, a bit for each of the last answers that say it."""


class View(NamedTuple):
    """What `look` has found; filled anew each time."""

    places: NDArray[np.float32]
    """Traits of each place."""
    votes: NDArray[np.int64]
    """Of each place, the index of the word that it votes for."""
    words: NDArray[np.int32]
    traits: NDArray[np.float32]
    """Of each word."""


@compiled
def new_view() -> View:
    """Room for what `look` may find."""
    return View(
        np.zeros((MAX_PLACES, PLACE_TRAITS), dtype=np.float32),
        np.zeros(MAX_PLACES, dtype=np.int64),
        np.zeros(MAX_WORDS, dtype=np.int32),
        np.zeros((MAX_WORDS, WORD_TRAITS), dtype=np.float32),
    )


@compiled
def listen(arrays: Arrays, asked: Asked) -> Heard:
    """Before the first word: the question is known, and the last answers of the stream."""
    recent = np.zeros(RECENT_SLOTS, dtype=np.uint8)
    found, number = 0, asked.number - 1
    oldest = max(0, asked.number - 256)
    while number >= oldest and found < NUM_RECENT:
        if arrays.streams[number] == asked.stream or asked.turn == 0:
            for place in range(arrays.starts[number], arrays.starts[number + 1]):
                slot = slot_of_token(arrays, arrays.tokens[place]) & (RECENT_SLOTS - 1)
                recent[slot] |= np.uint8(1 << found)
            found += 1
        number -= 1
    return Heard(
        np.zeros(NUM_COMMON, dtype=np.uint8),
        np.zeros(asked.number + 1, dtype=np.float32),
        np.zeros(2, dtype=np.float32),
        recent,
    )


@compiled
def hear(
    arrays: Arrays,
    asked: Asked,
    num_answers: int,
    said: NDArray[np.int32],
    stop: int,
    chain: int,
    heard: Heard,
) -> None:
    """Take in the word before ``stop``, whose last place is ``chain``.

    An answer that also says it is the more alike, the fewer answers say it.
    """
    word = said[stop - 1]
    count_common(arrays, word, heard.counts)
    for earlier in range(stop - 1):
        if said[earlier] == word:
            return
    spread = arrays.spread[slot_of_token(arrays, word)]
    if 2 * spread > num_answers or spread == 0:
        return
    weight = np.float32(np.log(num_answers / spread))
    heard.weights[0] += weight
    place, last, num_steps = chain, -1, 0
    while place >= 0 and num_steps < MAX_MENTIONS:
        num_steps += 1
        answer = arrays.answers[place]
        if answer != last and answer < asked.number and arrays.tokens[place - 1] == word:
            last = answer
            heard.overlaps[answer] += weight
            if heard.overlaps[answer] > heard.weights[1]:
                heard.weights[1] = heard.overlaps[answer]
        place = arrays.back[LAST_WORD, place]


@compiled
def num_matching(
    arrays: Arrays, place: int, said: NDArray[np.int32], stop: int, skipped: int, most: int
) -> int:
    """How many words before ``place`` are those before ``stop``, the first ones left out."""
    length = skipped
    reach = min(stop, place, skipped + most)
    while length < reach and arrays.tokens[place - 1 - length] == said[stop - 1 - length]:
        length += 1
    return length - skipped


@compiled
def describe_place(
    arrays: Arrays,
    asked: Asked,
    heard: Heard,
    said: NDArray[np.int32],
    stop: int,
    place: int,
    match: int,
    traits: NDArray[np.float32],
) -> tuple[int, float]:
    """Write down what speaks for a place; returns how old it is, and how alike its answer."""
    answer = arrays.answers[place]
    same_stream = arrays.streams[answer] == asked.stream
    age = asked.turn - 1 - arrays.turns[answer] if same_stream else asked.number - 1 - answer
    age = min(max(age, 0), 4000)
    beyond = 0
    if match < stop and match < MAX_MATCH:
        beyond = num_matching(arrays, place, said, stop, match + 1, MAX_BEYOND)
    overlap = heard.overlaps[answer]
    share = overlap / (heard.weights[0] + np.float32(1e-6))
    start = arrays.starts[answer]
    apart = abs(place - start - stop)
    traits[0] = match / np.float32(16)
    traits[1] = LOGS[match] / np.float32(3.5)
    traits[2] = match >= 2
    traits[3] = match >= 3
    traits[4] = match >= 4
    traits[5] = match >= 6
    traits[6] = match >= 8
    traits[7] = match >= 12
    traits[8] = match >= 16
    traits[9] = match >= min(stop, MAX_MATCH)
    traits[10] = LOGS[beyond] / np.float32(3)
    traits[11] = beyond >= 4
    traits[12] = LOGS[age] / np.float32(7)
    traits[13] = np.float32(1) / np.float32(1 + age)
    traits[14] = np.float32(8) / np.float32(8 + age)
    traits[15] = np.float32(64) / np.float32(64 + age)
    traits[16] = same_stream
    traits[17] = share
    traits[18] = share * share
    traits[19] = overlap / (heard.weights[1] + np.float32(1e-6))
    all_same = True
    for common in range(NUM_COMMON):
        same = arrays.counts[place, common] == heard.counts[common]
        all_same = all_same and same
        traits[20 + common] = same
    traits[28] = all_same
    traits[29] = np.float32(1) / np.float32(1 + apart)
    traits[30] = LOGS[min(apart, 4000)] / np.float32(4)
    traits[31] = arrays.tokens[start] == said[0]
    return age, share


@compiled
def look(
    arrays: Arrays,
    asked: Asked,
    num_answers: int,
    heard: Heard,
    said: NDArray[np.int32],
    stop: int,
    chains: NDArray[np.int64],
    view: View,
) -> tuple[int, int, int]:
    """Find places like the one after ``stop`` words.

    Returns how many there are, for how many words they vote, and the longest match of them.
    ``chains`` has the last place of each length of context.
    """
    num_places = num_words = longest = first_choice = 0
    for kind in range(NUM_LENGTHS):
        length = CONTEXT_LENGTHS[kind]
        if length > stop:
            continue
        place, num_taken, num_steps = chains[kind], 0, 0
        while place >= 0 and num_taken < MAX_PLACES_OF[kind] and num_steps < MAX_STEPS:
            num_steps += 1
            word = arrays.tokens[place]
            if word >= 0 and arrays.answers[place] < asked.number:
                match = num_matching(arrays, place, said, stop, 0, MAX_MATCH)
                # Longer matches were met in the chain before.
                if match >= length and (kind == 0 or match < CONTEXT_LENGTHS[kind - 1]):
                    index = 0
                    while index < num_words and view.words[index] != word:
                        index += 1
                    if index < MAX_WORDS:
                        traits = view.traits[index]
                        age, share = describe_place(
                            arrays, asked, heard, said, stop, place, match, view.places[num_places]
                        )
                        if index == num_words:
                            view.words[index] = word
                            num_words += 1
                            for trait in range(WORD_TRAITS):
                                traits[trait] = 0
                        if match > longest:
                            longest, first_choice = match, index
                        view.votes[num_places] = index
                        num_places += 1
                        num_taken += 1
                        traits[NUM_SHARES] = max(traits[NUM_SHARES], match / np.float32(16))
                        traits[NUM_SHARES + 1] += 1
                        newness = np.float32(1) / np.float32(1 + age)
                        traits[NUM_SHARES + 2] = max(traits[NUM_SHARES + 2], newness)
                        traits[NUM_SHARES + 3] = max(traits[NUM_SHARES + 3], np.float32(share))
            place = arrays.back[kind, place]
    if num_words > 1:
        for index in range(num_words):
            describe_word(
                arrays, heard, num_answers, said, stop, view.words[index], view.traits[index]
            )
            traits = view.traits[index]
            traits[NUM_SHARES + 4] = traits[NUM_SHARES + 1] / num_places
            traits[NUM_SHARES + 1] = LOGS[int(traits[NUM_SHARES + 1])] / np.float32(4)
            traits[LONGEST] = index == first_choice
            traits[NUM_SHARES + 6] = LOGS[longest] / np.float32(3.5)
            traits[NUM_SHARES + 7] = num_words / np.float32(16)
    return num_places, num_words, longest


@compiled
def describe_word(
    arrays: Arrays,
    heard: Heard,
    num_answers: int,
    said: NDArray[np.int32],
    stop: int,
    word: int,
    traits: NDArray[np.float32],
) -> None:
    """Write down what speaks for a word, wherever it was said."""
    num_said, last, is_pair = 0, -1, False
    for place in range(stop):
        if said[place] == word:
            num_said += 1
            last = place
            is_pair = is_pair or (place > 0 and said[place - 1] == said[stop - 1])
    slot = slot_of_token(arrays, word)
    mentions = heard.recent[slot & (RECENT_SLOTS - 1)]
    num_mentions = 0
    for bit in range(NUM_RECENT):
        num_mentions += (mentions >> bit) & 1
    first = NUM_SHARES + 8
    traits[first] = 1
    traits[first + 1] = num_said > 0
    traits[first + 2] = LOGS[min(num_said, 4000)] / np.float32(2)
    traits[first + 3] = np.float32(1) / np.float32(stop - last) if num_said else 0
    traits[first + 4] = is_pair
    traits[first + 5] = mentions & 1
    traits[first + 6] = num_mentions / np.float32(NUM_RECENT)
    traits[first + 7] = (mentions & 1) == 1 and num_said == 0
    traits[first + 8] = mentions == 0 and num_said == 0
    traits[first + 9] = min(arrays.spread[slot] / np.float32(num_answers + 1), np.float32(1))
    traits[first + 10] = min(stop, 128) / np.float32(64)
    traits[first + 11] = num_mentions > 0 and num_said > 0
