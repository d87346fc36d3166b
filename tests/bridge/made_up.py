"""Records of made-up cameras whose answers depend on what is seen, and bridges of a few weights."""

from random import Random

import numpy as np

from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.collect.record import Record

QUESTIONS = ("What is it?", "Where is it?", "Is it safe?")
VOCABULARY_SIZE = 200
PLACEHOLDER, END = 190, 2
FEATURE_SIZE = 6


def answer(question: int, thing: int) -> tuple[int, ...]:
    """Twelve tokens: the question's own words, and in their midst the thing that is seen."""
    own = [10 + 20 * question + place for place in range(10)]
    return (*own[:5], 100 + thing, *own[5:], END)


def records(num_streams: int = 12, num_clips: int = 6, num_things: int = 4, seed: int = 0):
    """What is seen changes every other clip; features tell it, events after the target's less."""
    draw = Random(seed)
    rows = []
    for number in range(num_streams):
        thing = draw.randrange(num_things)
        for clip in range(num_clips):
            if clip % 2 == 0:
                thing = draw.randrange(num_things)
            features = _features(thing, draw)
            for place, question in enumerate(QUESTIONS):
                rows.append(
                    Record(
                        stream=f"camera-{number}",
                        index=clip * len(QUESTIONS) + place,
                        clip=clip,
                        clip_digest=f"{number}-{clip}",
                        question=question,
                        prompt_ids=(1, *[PLACEHOLDER] * 9, 150 + place, 151),
                        answer_ids=answer(place, thing),
                        finish_reason="stop",
                        features=features,
                    )
                )
    return rows


def _features(thing: int, draw: Random) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(draw.randrange(2**31))
    seen = {}
    for name, rows in ((LAST, 3), (EARLIER, 2), (DRAFTER, 2)):
        tokens = 0.1 * noise.normal(size=(rows, FEATURE_SIZE))
        tokens[:, thing] += 1.0
        seen[name] = tokens.astype(np.float16)
    return seen
