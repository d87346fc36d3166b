"""Which of the vision features are kept of a clip: the newest whole, the earlier ones pooled.

A target's tower gives hundreds of tokens a frame. What is new in a clip is in its last frame; of
the others two tokens each tell what was there before.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.errors import CollectError
from headstart.speculation.drafter import Features

LAST, EARLIER, DRAFTER = "target_last", "target_earlier", "drafter"
TARGET_FEATURES = (LAST, EARLIER)
MAX_TOKENS = 80
"""Of a picture that a bridge looks at; one of more is pooled to so many."""


def target_features(items: Sequence[Features]) -> dict[str, Features]:
    """Of the last item all tokens, and of each earlier one the means of its two halves.

    An item is a frame, or what the target's view cuts a clip into instead. Tokens of a frame come
    row by row, so the halves are the upper and the lower half of the picture. An item of one token
    is no picture but a mark, such as the end of a video, and is left out.
    """
    pictures = [item for item in items if len(item) > 1]
    if not pictures:
        raise CollectError("the target's tower gave no features of the clip: show it a video")
    *earlier, last = pictures
    halves = [_mean(half) for item in earlier for half in np.array_split(item, 2)]
    size = last.shape[-1]
    return {LAST: last, EARLIER: np.stack(halves) if halves else np.empty((0, size), np.float16)}


def drafter_features(items: Sequence[Features]) -> dict[str, Features]:
    """Everything: an event model pools its slices itself. No rows where it saw nothing."""
    return {DRAFTER: np.concatenate(items) if items else np.empty((0, 0), np.float16)}


def at_most(tokens: Features, num_tokens: int) -> NDArray[np.float32]:
    """The tokens, or where there are more than ``num_tokens``, so many means of neighbours."""
    found: NDArray[np.float32] = np.asarray(tokens, np.float32)
    if len(found) <= num_tokens:
        return found
    return np.stack([part.mean(axis=0) for part in np.array_split(found, num_tokens)])


def _mean(tokens: Features) -> Features:
    mean: Features = tokens.mean(axis=0, dtype=np.float32).astype(np.float16)
    return mean
