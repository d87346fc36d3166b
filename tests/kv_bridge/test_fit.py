"""The closed-form fit of a KV bridge finds a map that is there, and the mean where none is."""

import numpy as np
import pytest

from headstart.errors import TrainingError
from headstart_research.kv_bridge.bridge import KvBridge
from headstart_research.kv_bridge.fit import KvSums, SeenClip, best_fit, unexplained
from tests.kv_bridge.test_bridge import CONFIG, random_bridge


def clips_of(bridge: KvBridge, rng: np.random.Generator, count: int, noise: float = 0.0):
    for _ in range(count):
        features = rng.normal(size=(7, CONFIG.feature_size)).astype(np.float16)
        rows = bridge.states(features).reshape(CONFIG.num_tokens, -1)
        spread = noise * rng.normal(size=rows.shape)
        spread[: len(CONFIG.head_ids)] = 0.0  # what comes before a clip does not depend on it
        yield SeenClip(features, (rows + spread).astype(np.float32))


def summed(clips) -> KvSums:
    sums = KvSums(CONFIG)
    for clip in clips:
        sums.add(clip)
    return sums


def test_a_linear_map_is_found(rng):
    truth = random_bridge(rng)
    bridge, strength = best_fit(summed(clips_of(truth, rng, 60)), [*clips_of(truth, rng, 5)])
    assert strength == 1e-3
    assert unexplained(bridge, [*clips_of(truth, rng, 5)]).max() < 1e-3
    np.testing.assert_allclose(bridge.means[:2], truth.means[:2], atol=1e-4)


def test_where_events_say_nothing_the_mean_is_left(rng):
    truth = random_bridge(rng)
    silent = KvBridge(CONFIG, truth.means, truth.centre, 0.0 * truth.weights)
    learnt = summed(clips_of(silent, rng, 12, noise=1.0))
    bridge, strength = best_fit(learnt, [*clips_of(silent, rng, 5, noise=1.0)])
    assert strength == 100.0
    left = unexplained(bridge, [*clips_of(silent, rng, 5, noise=1.0)])
    assert np.all(left < 1.1)
    weak = learnt.fit(1e-3)
    assert unexplained(weak, [*clips_of(silent, rng, 5, noise=1.0)]).mean() > left.mean()


def test_too_few_clips_are_refused(rng):
    with pytest.raises(TrainingError, match="give two at least"):
        summed(clips_of(random_bridge(rng), rng, 1)).fit(1.0)
