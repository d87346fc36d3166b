"""The key map of the published EventGPT, and how its prompt becomes tokens."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs an engine's torch: headstart[cpu]")
pytest.importorskip("transformers")

from headstart.errors import CheckpointError, ModelConfigError
from headstart.models.view import view_of
from headstart_events.eventgpt.config import EventChatConfig, register
from headstart_events.eventgpt.view import (
    canonical_name,
    event_geometry,
    event_prompt,
    expected_shapes,
    num_window_tokens,
    published_shapes,
)
from headstart_lab.tiny import TinyEventGpt

LLAMA_TOKENIZER = Path(__file__).parents[3] / "shared" / "samples" / "llama-tokenizer.model"


@pytest.fixture(scope="module")
def config_7b():
    """What the published config.json leaves out has the published values by default."""
    return EventChatConfig(architectures=["EventChatModel"], max_position_embeddings=4096)


def test_geometry_of_the_published_config(config_7b):
    geometry = event_geometry(config_7b)
    assert (geometry.image_size, geometry.tokens_per_picture) == (336, 577)
    assert num_window_tokens(geometry, geometry.num_pictures) == 582


def test_published_names_and_shapes(config_7b):
    shapes = published_shapes(config_7b)
    tower = "model.visual_tower.visual_tower.vision_model."
    assert shapes["model.embed_tokens.weight"] == (32000, 4096)
    assert shapes["lm_head.weight"] == (32000, 4096)
    assert shapes["model.layers.31.self_attn.q_proj.weight"] == (4096, 4096)
    assert shapes["model.norm.weight"] == (4096,)
    assert shapes[tower + "embeddings.position_embedding.weight"] == (577, 1024)
    assert shapes[tower + "encoder.layers.23.mlp.fc1.weight"] == (4096, 1024)
    assert shapes["model.visual_projector.0.weight"] == (4096, 1024)
    assert shapes["model.visual_projector.2.weight"] == (4096, 4096)
    assert shapes["model.feature_adaptor.weight"] == (4096, 4096)
    assert len(expected_shapes(config_7b)) == len(shapes)  # no two keys fell together


def test_a_tower_saved_by_a_newer_transformers_has_the_same_names(config_7b):
    for name in published_shapes(config_7b):
        assert canonical_name(name.replace("vision_model.", "")) == canonical_name(name)


def test_every_7b_key_lands_in_the_vllm_model_and_fills_it(config_7b, meta_vllm_model):
    register()
    model = meta_vllm_model(config_7b)
    weights = {n: torch.empty(s, device="meta") for n, s in published_shapes(config_7b).items()}
    assert model.load_weights(iter(weights.items())) == set(dict(model.named_parameters()))


def test_a_missing_adaptor_is_named(tmp_path):
    from safetensors.torch import load_file, save_file
    from transformers import AutoConfig

    register()
    TinyEventGpt().save(tmp_path)
    view = view_of(AutoConfig.from_pretrained(tmp_path))
    view.check_checkpoint(tmp_path)

    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.feature_adaptor.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"1 missing: feature_adaptor\.weight"):
        view.check_checkpoint(tmp_path)


def test_a_checkpoint_with_another_bridge_is_refused(config_7b):
    other = EventChatConfig(use_event_qformer=True)
    with pytest.raises(ModelConfigError, match="qformer"):
        event_geometry(other)


@pytest.mark.skipif(not LLAMA_TOKENIZER.exists(), reason="needs Llama's published tokenizer")
def test_a_short_question_takes_the_published_number_of_tokens(config_7b):
    from sentencepiece import SentencePieceProcessor

    llama = SentencePieceProcessor(model_file=str(LLAMA_TOKENIZER))
    before, after = event_prompt("What are the key elements in this scene?").split("<event>")
    num_text_tokens = 1 + len(llama.encode(before)) + len(llama.encode(after))
    geometry = event_geometry(config_7b)
    assert num_text_tokens + num_window_tokens(geometry, 5) == 641
