"""The key map of the published checkpoint, and what a wrong checkpoint is told."""

import json
import re

import pytest

torch = pytest.importorskip("torch", reason="needs an engine's torch: headstart[cpu]")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    CLIPVisionConfig,
    LlamaConfig,
    VideoLlavaConfig,
)

from headstart.errors import CheckpointError, ModelConfigError
from headstart.models.video_llava.view import canonical_name, expected_shapes, video_geometry
from headstart.models.view import view_of


@pytest.fixture(scope="module")
def config_7b():
    """LanguageBind/Video-LLaVA-7B-hf: Vicuna-7B with three tokens added, CLIP-L/14 at 224 px."""
    return VideoLlavaConfig(
        architectures=["VideoLlavaForConditionalGeneration"],
        vision_config=CLIPVisionConfig(
            hidden_size=1024,
            intermediate_size=4096,
            num_hidden_layers=24,
            num_attention_heads=16,
            image_size=224,
            patch_size=14,
        ),
        text_config=LlamaConfig(
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
            max_position_embeddings=4096,
            vocab_size=32064,
        ),
    )


def published(name: str) -> str:
    """The name under which the published file holds one of transformers' weights."""
    name = re.sub(r"^model\.(image|video)_tower\.", r"\1_tower.vision_model.", name)
    name = name.removeprefix("model.") if "multi_modal_projector" in name else name
    name = re.sub(r"^model\.language_model\.", "language_model.model.", name)
    return re.sub(r"^lm_head\.", "language_model.lm_head.", name)


def test_geometry_of_the_published_config(config_7b):
    geometry = video_geometry(config_7b)
    assert (geometry.tokens_per_picture, geometry.num_pictures) == (257, 8)


def test_every_layout_of_every_7b_key_has_one_canonical_name(config_7b):
    from transformers import VideoLlavaForConditionalGeneration

    with torch.device("meta"):
        module_names = set(VideoLlavaForConditionalGeneration(config_7b).state_dict())
    shapes = expected_shapes(config_7b)
    assert len(shapes) == len(module_names)  # no two keys fell together
    for name in module_names:
        saved_by_transformers_5 = published(name).replace("tower.vision_model.", "tower.")
        for layout in (name, published(name), saved_by_transformers_5):
            assert canonical_name(layout) == published(name)
            assert canonical_name(layout) in shapes


def test_7b_shapes_are_the_published_ones(config_7b):
    shapes = expected_shapes(config_7b)
    assert shapes["language_model.model.embed_tokens.weight"] == (32064, 4096)
    assert shapes["language_model.lm_head.weight"] == (32064, 4096)
    assert shapes["language_model.model.layers.31.mlp.down_proj.weight"] == (4096, 11008)
    assert shapes["multi_modal_projector.linear_1.weight"] == (4096, 1024)
    assert shapes["multi_modal_projector.linear_2.bias"] == (4096,)
    tower = "video_tower.vision_model."
    assert shapes[tower + "embeddings.patch_embedding.weight"] == (1024, 3, 14, 14)
    assert shapes[tower + "embeddings.position_embedding.weight"] == (257, 1024)
    assert shapes[tower + "encoder.layers.23.self_attn.q_proj.weight"] == (1024, 1024)


def test_every_7b_key_lands_in_the_vllm_model_and_fills_it(config_7b, meta_vllm_model):
    model = meta_vllm_model(config_7b)
    weights = {
        name: torch.empty(shape, device="meta")
        for name, shape in expected_shapes(config_7b).items()
    }
    loaded = model.load_weights(iter(weights.items()))
    assert loaded == set(dict(model.named_parameters()))
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(7.06e9, rel=0.01)


def test_the_vllm_model_names_a_key_it_does_not_know(config_7b, meta_vllm_model):
    model = meta_vllm_model(config_7b)
    stranger = ("multi_modal_projector.linear_3.weight", torch.empty(1, device="meta"))
    with pytest.raises(ValueError, match="linear_3"):
        model.load_weights(iter([stranger]))


def rewrite(checkpoint, into, change):
    """A copy of a checkpoint with its tensors changed."""
    into.mkdir()
    for file in checkpoint.iterdir():
        if file.suffix != ".safetensors":
            (into / file.name).write_bytes(file.read_bytes())
    save_file(change(load_file(checkpoint / "model.safetensors")), into / "model.safetensors")
    return into


def check(checkpoint):
    view_of(AutoConfig.from_pretrained(checkpoint)).check_checkpoint(checkpoint)


def test_a_checkpoint_saved_by_transformers_is_complete(tiny_target):
    check(tiny_target)


def test_the_published_names_are_complete_too(tiny_target, tmp_path):
    copy = rewrite(
        tiny_target, tmp_path / "copy", lambda t: {canonical_name(k): v for k, v in t.items()}
    )
    assert "video_tower.vision_model.pre_layrnorm.bias" in load_file(copy / "model.safetensors")
    check(copy)


def test_a_missing_key_is_named(tiny_target, tmp_path):
    def drop(tensors):
        del tensors["multi_modal_projector.linear_2.bias"]
        return tensors

    with pytest.raises(CheckpointError, match=r"1 missing: multi_modal_projector\.linear_2\.bias"):
        check(rewrite(tiny_target, tmp_path / "copy", drop))


def test_an_unexpected_key_is_named(tiny_target, tmp_path):
    def add(tensors):
        return {**tensors, "language_model.model.extra": torch.zeros(1)}

    with pytest.raises(CheckpointError, match=r"1 unexpected: language_model\.model\.extra"):
        check(rewrite(tiny_target, tmp_path / "copy", add))


def test_a_wrong_shape_is_named_with_both_shapes(tiny_target, tmp_path):
    def widen(tensors):
        return {**tensors, "multi_modal_projector.linear_2.bias": torch.zeros(7)}

    with pytest.raises(
        CheckpointError, match=r"linear_2\.bias \(stored \(7,\), config says \(128,"
    ):
        check(rewrite(tiny_target, tmp_path / "copy", widen))


def test_a_truncated_file_is_named(tiny_target, tmp_path):
    copy = rewrite(tiny_target, tmp_path / "copy", lambda tensors: tensors)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"model\.safetensors is not a whole"):
        check(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vision_feature_layer": [-2, -3]}, "single integer"),
        ({"video_seq_length": 2055}, "whole number of frames"),
    ],
)
def test_a_config_that_cannot_be_is_told_what_to_correct(tiny_target, change, message):
    values = json.loads((tiny_target / "config.json").read_text()) | change
    with pytest.raises(ModelConfigError, match=message):
        video_geometry(VideoLlavaConfig(**values))
