"""Tiny random checkpoints of the vision models that people run, as transformers saves them.

Processors are transformers' own. Chat templates are ours, since the published ones are on a hub;
they put the same marks around a video as those do.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SENTENCES = (
    "What is happening on the road? Describe whoever is near it.",
    "A white car stops at the light, and two people cross in 3.5 seconds.",
)
SPREAD = 0.25
"""Of random weights: far above a trained model's, so that answers differ from clip to clip."""
TEXT_SIZE = 64
MAX_TOKENS = 4096


def train_bytes(marks: Sequence[str], end: str, named: Mapping[str, str] | None = None) -> Any:
    """A small tokenizer of the byte-level kind, as all these models have, with the given marks.

    The tokenizer itself knows those that are ``named``.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    bytewise = Tokenizer(models.BPE())
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    bytewise.train_from_iterator(SENTENCES, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        clean_up_tokenization_spaces=False,
        extra_special_tokens=dict(named or {}),
    )
    tokenizer.add_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    tokenizer.eos_token, tokenizer.pad_token = end, marks[0]
    return tokenizer


def chat_template(video: str, image: str, end_of_turn: str = "<|im_end|>") -> str:
    """Turns between marks, with what stands in the place of a video and of a picture."""
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
        "{% for part in message['content'] %}"
        f"{{% if part['type'] == 'video' %}}{video}"
        f"{{% elif part['type'] == 'image' %}}{image}"
        "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
        f"{end_of_turn}\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def qwen2_text(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """The config of a language model of Qwen's kind."""
    return {
        "vocab_size": -(-len(tokenizer) // 64) * 64,
        "hidden_size": TEXT_SIZE,
        "intermediate_size": 2 * TEXT_SIZE,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": MAX_TOKENS,
        "initializer_range": SPREAD,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        **more,
    }


def save(model_class: type, config: Any, directory: Path) -> None:
    """Write random weights."""
    import torch
    from transformers import GenerationConfig

    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = model_class(config)
    text = config.get_text_config()
    model.generation_config = GenerationConfig(
        eos_token_id=text.eos_token_id, pad_token_id=text.pad_token_id
    )
    model.save_pretrained(directory)


QWEN_MARKS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
QWEN_TEMPLATE = chat_template(
    "<|vision_start|><|video_pad|><|vision_end|>", "<|vision_start|><|image_pad|><|vision_end|>"
)
# vLLM normalizes videos in the tower, with the mean and deviation of pictures. Published
# checkpoints have the same for both; the classes' defaults differ.
HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def qwen_ids(tokenizer: Any) -> dict[str, int]:
    """The config's names of the marks."""
    names = ("vision_start", "vision_end", "image", "video")
    ids = tokenizer.convert_tokens_to_ids(list(QWEN_MARKS[3:]))
    return {f"{name}_token_id": id for name, id in zip(names, ids, strict=True)}


def save_qwen3_vl(directory: Path) -> None:
    """Qwen3-VL: pairs of frames, each after its time."""
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokenizer = train_bytes(QWEN_MARKS, "<|im_end|>")
    patches = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, **HALVES}
    Qwen3VLProcessor(
        Qwen2VLImageProcessor(size={"shortest_edge": 32**2, "longest_edge": 256**2}, **patches),
        tokenizer,
        Qwen3VLVideoProcessor(
            # Eight frames of more than 90 x 90 have to be scaled, and two have not.
            size={"shortest_edge": 2 * 32**2, "longest_edge": 8 * 96**2},
            cap_pixels_per_frame=False,
            **patches,
        ),
        chat_template=QWEN_TEMPLATE,
    ).save_pretrained(directory)
    config = Qwen3VLConfig(
        text_config=qwen2_text(
            tokenizer,
            head_dim=32,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": TEXT_SIZE,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
            "initializer_range": SPREAD,
        },
        **qwen_ids(tokenizer),
        tie_word_embeddings=False,
    )
    save(Qwen3VLForConditionalGeneration, config, directory)


def save_qwen2_5_vl(directory: Path) -> None:
    """Qwen2.5-VL: positions in time that begin anew with each item."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    tokenizer = train_bytes(QWEN_MARKS, "<|im_end|>")
    patches = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, **HALVES}
    Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(size={"shortest_edge": 28**2, "longest_edge": 224**2}, **patches),
        tokenizer,
        Qwen2VLVideoProcessor(
            size={"shortest_edge": 28**2, "longest_edge": 112**2},
            **patches,
        ),
        chat_template=QWEN_TEMPLATE,
    ).save_pretrained(directory)
    config = Qwen2_5_VLConfig(
        text_config=qwen2_text(
            tokenizer,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [4, 6, 6],
            },
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": TEXT_SIZE,
            "fullatt_block_indexes": [1],
            "window_size": 56,
            "tokens_per_second": 2,
            "initializer_range": SPREAD,
        },
        **qwen_ids(tokenizer),
        tie_word_embeddings=False,
    )
    save(Qwen2_5_VLForConditionalGeneration, config, directory)


def save_llava_onevision(directory: Path) -> None:
    """LLaVA-OneVision: frames, each alone, and one mark after the last."""
    from safetensors.torch import load_file, save_file
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
        Qwen2Config,
        SiglipVisionConfig,
    )

    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>")
    tokenizer = train_bytes(marks, "<|im_end|>")
    image_id, video_id = tokenizer.convert_tokens_to_ids(["<image>", "<video>"])
    size, grids = {"height": 56, "width": 56}, [[56, 56], [56, 112], [112, 56]]
    LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=grids),
        tokenizer,
        LlavaOnevisionVideoProcessor(size=size),
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        chat_template=chat_template("<video>\n", "<image>\n"),
    ).save_pretrained(directory)
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=56,
            patch_size=14,
            initializer_range=SPREAD,
            vision_use_head=False,
        ).to_dict(),
        text_config=Qwen2Config(**qwen2_text(tokenizer)).to_dict(),
        image_token_index=image_id,
        video_token_index=video_id,
        image_grid_pinpoints=grids,
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
        tie_word_embeddings=False,
    )
    save(LlavaOnevisionForConditionalGeneration, config, directory)
    # As in published checkpoints; transformers of today leaves a level out, and vLLM wants it.
    file, tower = directory / "model.safetensors", "vision_tower."
    weights = {
        name.replace(tower, f"{tower}vision_model."): weight
        for name, weight in load_file(file).items()
    }
    save_file(weights, file, metadata={"format": "pt"})


def save_internvl(directory: Path) -> None:
    """InternVL3: frames of one tile, each after its number."""
    from transformers import (
        GotOcr2ImageProcessor,
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        InternVLVideoProcessor,
        InternVLVisionConfig,
        Qwen2Config,
    )

    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = train_bytes([*marks, *named.values()], "<|im_end|>", named)
    size = {"height": 56, "width": 56}
    InternVLProcessor(
        GotOcr2ImageProcessor(size=size, crop_to_patches=False, **HALVES),
        tokenizer,
        InternVLVideoProcessor(size=size, **HALVES),
        image_seq_length=4,
        chat_template=chat_template("<video>\n", "<IMG_CONTEXT>\n"),
    ).save_pretrained(directory)
    config = InternVLConfig(
        vision_config=InternVLVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=[56, 56],
            patch_size=[14, 14],
            initializer_range=SPREAD,
        ).to_dict(),
        text_config=Qwen2Config(**qwen2_text(tokenizer)).to_dict(),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
        tie_word_embeddings=False,
    )
    save(InternVLForConditionalGeneration, config, directory)


SAVING: dict[str, Callable[[Path], None]] = {
    "qwen3_vl": save_qwen3_vl,
    "qwen2_5_vl": save_qwen2_5_vl,
    "llava_onevision": save_llava_onevision,
    "internvl": save_internvl,
}
