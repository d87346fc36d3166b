"""vLLM: with drafts `thinking_token_budget` ends thinking that has ended, or does not hold at all.

    python thinking_token_budget.py

Needs vLLM alone. Asks an engine without speculative decoding and one with vLLM's own n-gram drafts
the same. The model is a tiny Llama, written here, in which each word decides the next. Ends with
status 0 where the fault shows, and with 1 where it is gone.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
WORDS = ["<unk>", "<s>", "</s>", "<think>", "</think>", *"abcdefghijklmnopqrstuvwxyz"]
NGRAM = {
    "method": "ngram",
    "num_speculative_tokens": 6,
    "prompt_lookup_max": 3,
    "prompt_lookup_min": 1,
}
# What follows each word, and what is asked: a prompt and a budget.
FOLLOWS = {
    # Two words of thinking and two of answer, for ever.
    **{"<think>": "a", "a": "b", "b": "</think>", "</think>": "x", "x": "y", "y": "<think>"},
    # Eight words of thinking that would not end.
    **dict(zip("cdefghij", "defghijc", strict=True)),
}
ASKED = {
    "thinking of two words, budget of three": (
        "<think> a b </think> x y <think> a b </think> x y",
        3,
    ),
    "thinking of two words, budget of one": (
        "<think> a b </think> x y <think> a b </think> x y",
        1,
    ),
    "thinking without end, budget of twelve": ("<think> c", 12),
    "no budget": ("<think> a b </think> x y <think> a b </think> x y", None),
}


def write_model(directory: str, follows: Mapping[str, str]) -> None:
    """A Llama whose attention and MLP add nothing, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(directory)
    width = 64
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        bos_token_id=ids["<s>"],
        eos_token_id=ids["</s>"],
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(WORDS), width))
        model.lm_head.weight.zero_()
        for word, following in follows.items():
            model.lm_head.weight[ids[following], ids[word]] = 1.0
    model.save_pretrained(directory)


def answers(directory: str, speculative: dict[str, Any] | None) -> dict[str, str]:
    """What is said to each question, all asked at once."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        directory,
        dtype="float32",
        enforce_eager=True,
        max_model_len=128,
        max_num_seqs=8,
        kv_cache_memory_bytes=2**24,
        reasoning_config={"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"},
        speculative_config=speculative,
    )
    outputs = engine.generate(
        [prompt for prompt, _ in ASKED.values()],
        [
            SamplingParams(
                temperature=0.0,
                max_tokens=30,
                thinking_token_budget=budget,
                skip_special_tokens=False,
            )
            for _, budget in ASKED.values()
        ],
        use_tqdm=False,
    )
    engine.llm_engine.engine_core.shutdown()
    return {
        name: " ".join(WORDS[token] for token in output.outputs[0].token_ids)
        for name, output in zip(ASKED, outputs, strict=True)
    }


def main() -> None:
    """Ask both engines and print where they part."""
    with tempfile.TemporaryDirectory() as directory:
        write_model(directory, FOLLOWS)
        alone, drafted = answers(directory, None), answers(directory, NGRAM)
    num_faults = 0
    for name, expected in alone.items():
        num_faults += drafted[name] != expected
        print(f"\n{name}: {'the same' if drafted[name] == expected else 'DIFFERENT'}")
        print(f"  without drafts: {expected}\n  with drafts:    {drafted[name]}")
    print(f"\n{num_faults} of {len(alone)} answers are others with drafts")
    sys.exit(0 if num_faults else 1)


if __name__ == "__main__":
    main()
