"""A target's keys and values of a clip, held against the cache of transformers' own prefill."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs what the engine brings")
pytest.importorskip("transformers")

from headstart import Clip, Video
from headstart_research.kv_bridge.states import TargetStates
from tests.models.oracle import Asked, Oracle, random_clip


def test_rows_are_what_the_target_caches_with_keys_not_yet_turned(tiny_target, rng):
    states, oracle, frames = TargetStates(tiny_target), Oracle(tiny_target), random_clip(rng)
    rows = states.rows(Clip(Video.from_frames(frames, fps=8)))
    config = states.kv_config(feature_size=1)
    assert rows.shape == (config.num_tokens, config.row_size)
    ours = rows.reshape(-1, config.num_layers, 2, config.num_kv_heads, config.head_size)
    ids = oracle.prompt_ids(Asked(frames, "Who?"))
    pixels = oracle.image_processor(images=list(frames), return_tensors="pt")
    with torch.inference_mode():
        cache = oracle.model(
            input_ids=torch.tensor([ids]),
            pixel_values_videos=pixels["pixel_values_images"][None],
            use_cache=True,
        ).past_key_values
    for number in range(config.num_layers):
        layer = cache.layers[number]
        keys, values = (
            kept[0, :, : config.num_tokens].transpose(0, 1).numpy()
            for kept in (layer.keys, layer.values)
        )
        np.testing.assert_allclose(ours[:, number, 1], values, atol=1e-4)
        # Turning leaves the first token as it is, and every key as long as it is.
        np.testing.assert_allclose(ours[0, number, 0], keys[0], atol=1e-4)
        assert np.abs(ours[1:, number, 0] - keys[1:]).max() > 1e-2
        lengths = [np.linalg.norm(either, axis=-1) for either in (ours[:, number, 0], keys)]
        np.testing.assert_allclose(*lengths, rtol=1e-3, atol=1e-4)
