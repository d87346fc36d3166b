"""vLLM: a request takes over the `thinking_token_budget` of one that has ended.

    python thinking_token_budget_rows.py

Needs vLLM alone, and no speculative method. The model is a tiny Llama, written here, in which each
word decides the next: it thinks two words, says two, and so on. A request without a budget is asked
alone, and once more beside one that has a budget and ends first. Ends with status 0 where the fault
shows, and with 1 where it is gone.
"""

import os
import sys
import tempfile

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
WORDS = ["<unk>", "<s>", "</s>", "<think>", "</think>", "a", "b", "x", "y"]
FOLLOWS = {
    "<think>": "a",
    "a": "b",
    "b": "</think>",
    "</think>": "x",
    "x": "y",
    "y": "<think>",
}


def write_model(directory: str) -> None:
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
        for word, following in FOLLOWS.items():
            model.lm_head.weight[ids[following], ids[word]] = 1.0
    model.save_pretrained(directory)


def main() -> None:
    """Ask alone and beside the other, and print where the answers part."""
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as directory:
        write_model(directory)
        engine = LLM(
            directory,
            dtype="float32",
            enforce_eager=True,
            max_model_len=128,
            max_num_seqs=4,
            kv_cache_memory_bytes=2**24,
            reasoning_config={"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"},
        )
    plain = SamplingParams(temperature=0.0, max_tokens=24, skip_special_tokens=False)
    budgeted = SamplingParams(temperature=0.0, max_tokens=4, thinking_token_budget=1)
    (alone,) = engine.generate(["x y"], [plain], use_tqdm=False)
    _, beside = engine.generate(["x y <think>", "x y"], [budgeted, plain], use_tqdm=False)
    engine.llm_engine.engine_core.shutdown()
    expected, found = (
        " ".join(WORDS[token] for token in output.outputs[0].token_ids)
        for output in (alone, beside)
    )
    print(f"a request without a budget, alone:\n  {expected}")
    print(f"the same beside a request with a budget of one, which ends first:\n  {found}")
    print("the same" if found == expected else "DIFFERENT")
    sys.exit(0 if found != expected else 1)


if __name__ == "__main__":
    main()
