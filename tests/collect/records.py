"""Records for tests, and what makes two of them equal."""

import numpy as np

from headstart_research.bridge.pooling import EARLIER, LAST
from headstart_research.collect.record import Record

FEATURES = (LAST, EARLIER)


def clip_records(stream, clip, num_questions=2, size=3):
    """The records of one clip; all questions share its features."""
    rng = np.random.default_rng([clip, *stream.encode()])
    features = {
        name: rng.normal(size=(rows, size)).astype(np.float16)
        for name, rows in zip(FEATURES, (5, 4), strict=True)
    }
    return [
        Record(
            stream=stream,
            index=clip * num_questions + place,
            clip=clip,
            clip_digest=f"{stream}-{clip}",
            question=f"What is {place}?",
            prompt_ids=(1, *[7] * 5, place + 8),
            answer_ids=tuple(rng.integers(0, 2**31 - 1, place + 1).tolist()),
            finish_reason="stop",
            features=features,
        )
        for place in range(num_questions)
    ]


def content(record):
    """Everything of a record, to the bit."""
    features = {
        name: (array.shape, array.astype("<f2").tobytes())
        for name, array in record.features.items()
    }
    plain = {name: getattr(record, name) for name in Record.__slots__ if name != "features"}
    return {**plain, "features": features}


def by_place(records):
    """Records by stream and index, none of them twice."""
    found = {}
    for record in records:
        key = (record.stream, record.index)
        assert key not in found, f"{key} is there twice"
        found[key] = content(record)
    return found
