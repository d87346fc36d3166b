"""Qwen3-VL as it is published, 2B and 8B: their prompts and their shape, without their weights."""

from dataclasses import replace

import numpy as np
import pytest

from headstart import Clip, Video
from headstart.models.view import view_of
from tests.models.chat_target import needs_torchvision
from tests.models.tiny_targets import HALVES, QWEN_MARKS, QWEN_TEMPLATE, qwen_ids, train_bytes

pytestmark = [pytest.mark.engine, needs_torchvision]

QUESTION = "What is happening on the road?"
NUM_FRAMES = 16  # eight seconds, two a second
TEXTS = {
    "2B": {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "tie_word_embeddings": True,
    },
    "8B": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "tie_word_embeddings": False,
    },
}
TOWERS = {
    "2B": {
        "depth": 24,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "deepstack_visual_indexes": [5, 11, 17],
    },
    "8B": {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}
NUM_PARAMETERS = {"2B": 2.13e9, "8B": 8.77e9}


@pytest.fixture(params=TEXTS)
def size(request):
    return request.param


@pytest.fixture
def tokenizer():
    return train_bytes(QWEN_MARKS, "<|im_end|>")


@pytest.fixture
def config(size, tokenizer):
    """The published config; only the ids of the marks are those of our tokenizer."""
    from transformers import Qwen3VLConfig

    text = TEXTS[size]
    return Qwen3VLConfig(
        architectures=["Qwen3VLForConditionalGeneration"],
        text_config={
            **text,
            "vocab_size": 151936,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 262144,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5e6,
                "mrope_section": [24, 20, 20],
                "mrope_interleaved": True,
            },
        },
        vision_config={
            **TOWERS[size],
            "num_heads": 16,
            "num_position_embeddings": 2304,
            "out_hidden_size": text["hidden_size"],
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        **qwen_ids(tokenizer),
        tie_word_embeddings=text["tie_word_embeddings"],
    )


@pytest.fixture
def processor(tokenizer):
    """transformers' own, with the published bounds."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor

    patches = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, **HALVES}
    return Qwen3VLProcessor(
        Qwen2VLImageProcessor(size={"shortest_edge": 65536, "longest_edge": 16777216}, **patches),
        tokenizer,
        Qwen3VLVideoProcessor(size={"shortest_edge": 4096, "longest_edge": 25165824}, **patches),
        chat_template=QWEN_TEMPLATE,
    )


# The second does not fit the bound on pixels and is scaled down as a whole.
@pytest.mark.parametrize("frame_size", [(360, 640), (1080, 1920)])
def test_eight_seconds_at_two_frames_a_second(config, processor, tmp_path, rng, frame_size):
    from transformers.video_utils import VideoMetadata
    from vllm.engine.arg_utils import EngineArgs
    from vllm.multimodal import MULTIMODAL_REGISTRY
    from vllm.multimodal.processing import ProcessorInputs, TimingContext

    config.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    frames = np.broadcast_to(
        rng.integers(0, 256, (NUM_FRAMES, 1, 1, 3), dtype=np.uint8), (NUM_FRAMES, *frame_size, 3)
    )
    video = Video(frames, np.arange(NUM_FRAMES, dtype=np.int64) * 500_000)
    content = [{"type": "video"}, {"type": "text", "text": QUESTION}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    metadata = VideoMetadata(total_num_frames=16, fps=2.0, frames_indices=list(range(16)))
    expected = processor(
        text=[text],
        videos=[list(frames)],
        video_metadata=[metadata],
        do_sample_frames=False,
        return_tensors="np",
    )
    (grid,) = expected["video_grid_thw"].tolist()

    view = replace(view_of(config), num_frames=NUM_FRAMES)
    model_config = EngineArgs(
        str(tmp_path), max_model_len=32768, **view.engine_arguments
    ).create_model_config()
    ours = MULTIMODAL_REGISTRY.create_processor(model_config)
    media = view.media(Clip(video))
    inputs = ProcessorInputs(
        processor.tokenizer.encode(text, add_special_tokens=False), ours.info.parse_mm_data(media)
    )
    rendered = ours.apply(inputs, TimingContext(enabled=False))
    assert rendered["prompt_token_ids"] == expected["input_ids"][0].tolist()
    places = rendered["mm_placeholders"]["video"]
    tokens = [place.get_num_embeds() for place in places]
    assert tokens == [grid[1] * grid[2] // 4] * (NUM_FRAMES // 2)
    print(f"{frame_size}: {len(rendered['prompt_token_ids'])} tokens, {len(places)} of {tokens[0]}")


def test_the_engines_model_has_the_published_shape(size, config, meta_vllm_model):
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    with torch.device("meta"):
        published = Qwen3VLForConditionalGeneration(config)
    config.architectures = view_of(config).engine_arguments["hf_overrides"]["architectures"]
    model = meta_vllm_model(config)
    assert type(model).__name__ == "Qwen3VlInPairs"
    counts = [sum(p.numel() for p in m.parameters()) for m in (model, published)]
    assert counts[0] == counts[1]
    assert counts[0] == pytest.approx(NUM_PARAMETERS[size], rel=0.01)
