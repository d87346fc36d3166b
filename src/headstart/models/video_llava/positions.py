"""The positions of a prompt from which patches are left out.

A token keeps the position that it has in the prompt of the whole clip, and so its distance to
every other token. Text after a clip goes on where it would go on after the whole clip.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PlacedFrame = tuple[int, int, NDArray[np.bool_]]
"""Where a frame begins in the prompt; its step in its clip, negative in a clip that is shown whole;
and which of its tokens are in the prompt."""


def clip_positions(num_tokens: int, frames: Sequence[PlacedFrame]) -> NDArray[np.int64]:
    """The position of each token of a prompt with these frames, which come in order."""
    positions = np.empty(num_tokens, dtype=np.int64)
    done = following = clip_start = 0
    last_step = -1
    for offset, step, kept in frames:
        text = offset - done
        positions[done:offset] = following + np.arange(text)
        following += text
        if text or step <= last_step:
            clip_start = following  # another clip begins
        start = following if step < 0 else clip_start + step * len(kept)
        shown = np.flatnonzero(kept)
        done = offset + len(shown)
        positions[offset:done] = start + shown
        following, last_step = start + len(kept), step
    positions[done:] = following + np.arange(num_tokens - done)
    return positions
