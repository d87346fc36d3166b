"""A KV bridge on the disk, and what it gives for a clip."""

from dataclasses import replace

import numpy as np
import pytest

from headstart.errors import TrainingError
from headstart_research.kv_bridge.bridge import WEIGHTS, KvBridge, kv_inputs, recencies
from headstart_research.kv_bridge.config import FILE, KvConfig

CONFIG = KvConfig(
    target="a target",
    head_ids=(1, 7),
    video_token=99,
    num_frames=3,
    tokens_per_frame=5,
    num_layers=2,
    num_kv_heads=2,
    head_size=4,
    feature_size=6,
)


def random_bridge(rng: np.random.Generator, config: KvConfig = CONFIG) -> KvBridge:
    inputs, row = 2 * config.feature_size, config.row_size
    return KvBridge(
        config,
        rng.normal(size=(config.num_tokens, row)).astype(np.float32),
        rng.normal(size=(config.tokens_per_frame, inputs)).astype(np.float32),
        rng.normal(size=(2, inputs, row)).astype(np.float32),
    )


def test_each_place_gets_what_was_seen_there_and_on_average(rng):
    features = rng.normal(size=(9, 6)).astype(np.float16)
    seen = kv_inputs(features, 5)
    assert seen.shape == (5, 12)
    np.testing.assert_array_equal(seen[:, :6], features[4:].astype(np.float32))
    np.testing.assert_allclose(seen[:, 6:], np.tile(features.mean(axis=0), (5, 1)), atol=1e-2)
    fewer = kv_inputs(features[:2], 5)
    np.testing.assert_array_equal(fewer[:, :6], features[[0, 0, 0, 1, 1]].astype(np.float32))


def test_the_correction_grows_to_the_newest_frame_and_leaves_the_head_alone(rng):
    bridge = random_bridge(rng)
    features = rng.normal(size=(5, 6)).astype(np.float16)
    states = bridge.states(features)
    assert states.shape == (17, 2, 2, 2, 4)
    rows = states.reshape(17, -1)
    np.testing.assert_array_equal(rows[:2], bridge.means[:2])
    seen = kv_inputs(features, 5) - bridge.centre
    assert list(recencies(3)) == [0.0, 0.5, 1.0]
    for frame, recency in enumerate((0.0, 0.5, 1.0)):
        place = slice(2 + 5 * frame, 7 + 5 * frame)
        expected = bridge.means[place] + seen @ (bridge.weights[0] + recency * bridge.weights[1])
        np.testing.assert_allclose(rows[place], expected, rtol=1e-4, atol=1e-4)
    again = bridge.states(features)
    np.testing.assert_array_equal(again, states)  # the means are not written over


def test_it_is_read_as_it_was_written(rng, tmp_path):
    bridge = random_bridge(rng)
    bridge.save(tmp_path)
    read = KvBridge.load(tmp_path)
    assert read.config == CONFIG
    for name in ("means", "centre", "weights"):
        np.testing.assert_allclose(getattr(read, name), getattr(bridge, name), atol=1e-2)


def test_what_is_no_kv_bridge_is_refused_with_what_to_name(rng, tmp_path):
    with pytest.raises(TrainingError, match="headstart train kv"):
        KvBridge.load(tmp_path)
    (tmp_path / FILE).write_text("[]")
    with pytest.raises(TrainingError, match="headstart train kv"):
        KvBridge.load(tmp_path)
    random_bridge(rng).save(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"other bytes")
    with pytest.raises(TrainingError, match="cannot be read"):
        KvBridge.load(tmp_path)
    random_bridge(rng).save(tmp_path)
    replace(CONFIG, num_layers=3).write(tmp_path)
    with pytest.raises(TrainingError, match="train it again"):
        KvBridge.load(tmp_path)


def test_features_of_another_event_model_are_refused(rng):
    with pytest.raises(TrainingError, match="the event model it was trained with"):
        random_bridge(rng).states(np.zeros((5, 7), np.float16))
