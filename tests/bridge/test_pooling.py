"""What is kept of a tower's features."""

import numpy as np
import pytest

from headstart.errors import CollectError
from headstart_research.bridge.config import FeatureSize
from headstart_research.bridge.context import fitted
from headstart_research.bridge.pooling import (
    DRAFTER,
    EARLIER,
    LAST,
    MAX_TOKENS,
    at_most,
    drafter_features,
    target_features,
)


def test_the_last_frame_is_whole_and_each_earlier_one_two_means(rng):
    frames = [rng.normal(size=(17, 6)).astype(np.float16) for _ in range(8)]
    kept = target_features(frames)
    assert np.array_equal(kept[LAST], frames[-1])
    assert kept[EARLIER].shape == (14, 6)
    assert kept[EARLIER].dtype == np.float16
    for number, frame in enumerate(frames[:-1]):
        upper, lower = kept[EARLIER][2 * number : 2 * number + 2]
        np.testing.assert_allclose(upper, frame[:9].astype(np.float64).mean(0), atol=1e-3)
        np.testing.assert_allclose(lower, frame[9:].astype(np.float64).mean(0), atol=1e-3)


def test_a_mean_of_large_values_does_not_overflow():
    frames = [np.full((400, 2), 60_000, np.float16)] * 2
    assert np.isfinite(target_features(frames)[EARLIER]).all()


def test_a_mark_at_the_end_is_no_frame(rng):
    frames = [rng.normal(size=(4, 6)).astype(np.float16) for _ in range(3)]
    mark = rng.normal(size=(1, 6)).astype(np.float16)
    kept, without = target_features([*frames, mark]), target_features(frames)
    assert all(np.array_equal(kept[name], without[name]) for name in (LAST, EARLIER))
    with pytest.raises(CollectError, match="no features"):
        target_features([mark])


def test_a_clip_in_one_piece_has_nothing_earlier(rng):
    whole = rng.normal(size=(40, 6)).astype(np.float16)
    kept = target_features([whole])
    assert np.array_equal(kept[LAST], whole)
    assert kept[EARLIER].shape == (0, 6)


def test_an_event_model_is_kept_whole(rng):
    window = rng.normal(size=(70, 6)).astype(np.float16)
    assert np.array_equal(drafter_features([window])[DRAFTER], window)
    assert drafter_features([])[DRAFTER].shape == (0, 0)


def test_what_is_pooled_before_it_is_sent_is_what_a_bridge_was_trained_on(rng):
    """The published event model gives 582 tokens, which the bridge's fitting pools in training."""
    tokens = rng.normal(size=(582, 16)).astype(np.float16)
    feature = FeatureSize(DRAFTER, 16, MAX_TOKENS)
    sent = at_most(tokens, MAX_TOKENS).astype(np.float16)
    assert sent.shape == (MAX_TOKENS, 16)
    np.testing.assert_allclose(fitted(feature, sent), fitted(feature, tokens), atol=2e-3)
    few = tokens[:70]
    np.testing.assert_array_equal(at_most(few, MAX_TOKENS), few)
