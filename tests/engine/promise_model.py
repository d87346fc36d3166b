"""A random Llama that ends its answers, follows a grammar and stops thinking; and its adapter."""

import json
from pathlib import Path

from headstart_lab.tokenizer import BYTE_TOKENS, SPECIAL_TOKENS, train_tokenizer

NUM_TEXT_IDS = 360  # ids below this are text, the marks of thinking come after
THINKING_BEGINS, THINKING_ENDS = NUM_TEXT_IDS, NUM_TEXT_IDS + 1
_SENTENCES = (
    "The car stops at the light.",
    "Nobody is on the road, and it rains.",
    '{"light": "red", "cars": 3, "note": "the road is wet"}',
    '{"light": "green", "cars": 12, "note": "a bus waits"}',
    "(turn left) [turn right] go straight ahead, then stop",
)
_WIDTH, _LAYERS, _SPREAD = 64, 2, 0.25  # spread so far that no answer repeats one token


def save_model(directory: Path) -> None:
    """Write config, weights and tokenizer, as transformers does."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = train_tokenizer(_SENTENCES, NUM_TEXT_IDS, added_tokens=("<think>", "</think>"))
    tokenizer.save_pretrained(directory)
    end, *marks = tokenizer.convert_tokens_to_ids(["</s>", "<think>", "</think>"])
    if marks != [THINKING_BEGINS, THINKING_ENDS]:
        raise AssertionError(f"the marks of thinking are {marks}")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=_WIDTH,
        intermediate_size=2 * _WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=_SPREAD,
        bos_token_id=SPECIAL_TOKENS.index("<s>"),
        eos_token_id=end,
    )
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        # A token with a longer row is said more often: an answer ends, and stops thinking, after
        # twenty tokens or so. One with a shorter row is rare: bytes, which make no text to read.
        model.lm_head.weight[[end, THINKING_ENDS]] *= 1.6
        num_marks = len(SPECIAL_TOKENS)
        model.lm_head.weight[num_marks : num_marks + len(BYTE_TOKENS)] *= 0.5
    model.save_pretrained(directory)


def save_adapter(directory: Path, rank: int = 4) -> None:
    """Write a random LoRA adapter of the model's attention, in the files of peft."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(3)
    tensors = {
        f"base_model.model.model.layers.{layer}.self_attn.{name}.lora_{side}.weight": torch.randn(
            shape, generator=generator
        )
        * _SPREAD
        for layer in range(_LAYERS)
        for name in ("q_proj", "v_proj")
        for side, shape in (("A", (rank, _WIDTH)), ("B", (_WIDTH, rank)))
    }
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
    }
    (directory / "adapter_config.json").write_text(json.dumps(config))
