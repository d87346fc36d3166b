"""vLLM: `logprob_token_ids` beside drafts ends the engine, or gives no logprobs.

    python logprob_token_ids.py

Needs vLLM alone. Asks an engine without speculative decoding and one with vLLM's own n-gram drafts
the same. The model is a tiny Llama, written here, that counts from 8 to 15 over and over, so that
n-grams draft what it says. Ends with status 0 where the fault shows, and with 1 where it is gone.
"""

import os
import sys
import tempfile
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # errors are then raised here
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
VOCABULARY, FIRST, LAST = 32, 8, 15
PROMPT = [*range(FIRST, LAST + 1), *range(FIRST, LAST + 1)]
NAMED = [5, 6, 7]
NGRAM = {
    "method": "ngram",
    "num_speculative_tokens": 4,
    "prompt_lookup_max": 3,
    "prompt_lookup_min": 1,
}


def write_model(directory: str) -> None:
    """A Llama whose attention and MLP add nothing: each token decides the next."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    width = 2 * VOCABULARY
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(VOCABULARY, width))
        # What comes of each token differs a little, so that a logprob tells its place.
        model.lm_head.weight.copy_(0.1 * torch.randn(VOCABULARY, width))
        for token in range(VOCABULARY):
            following = token + 1 if FIRST <= token < LAST else FIRST
            model.lm_head.weight[following, token] = 1.0
    model.save_pretrained(directory)


def answers(directory: str, speculative: dict[str, Any] | None) -> dict[str, Any]:
    """Of each batch that is asked tokens and logprobs, or how the engine ended."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        directory,
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        max_model_len=128,
        max_num_seqs=4,
        kv_cache_memory_bytes=2**24,
        speculative_config=speculative,
    )
    said: dict[str, Any] = {}
    for name, settings in {
        "named alone": [{"logprob_token_ids": NAMED}],
        "named beside logprobs": [{"logprob_token_ids": NAMED}, {"logprobs": 1}],
        "named and as many logprobs": [{"logprob_token_ids": NAMED, "logprobs": 3}],
    }.items():
        try:
            outputs = engine.generate(
                [{"prompt_token_ids": PROMPT} for _ in settings],
                [
                    SamplingParams(temperature=0.0, max_tokens=12, detokenize=False, **one)
                    for one in settings
                ],
                use_tqdm=False,
            )
        except Exception as error:
            said[name] = f"THE ENGINE ENDS: {type(error).__name__}: {error}"
            break
        said[name] = [
            (
                list(output.outputs[0].token_ids),
                output.outputs[0].logprobs
                and [
                    {token: round(entry.logprob, 3) for token, entry in place.items()}
                    for place in output.outputs[0].logprobs
                ],
            )
            for output in outputs
        ]
    engine.llm_engine.engine_core.shutdown()
    return said


def main() -> None:
    """Ask both engines and print where they part."""
    import torch

    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as directory:
        write_model(directory)
        alone, drafted = answers(directory, None), answers(directory, NGRAM)
    num_faults = 0
    for name, expected in alone.items():
        found = drafted.get(name, "not asked any more: the engine has ended")
        num_faults += found != expected
        print(f"\n{name}: {'the same' if found == expected else 'DIFFERENT'}")
        for place, one in enumerate(expected):
            print(f"  request {place}, tokens without drafts: {one[0]}")
            print(f"  request {place}, first logprobs without drafts: {one[1] and one[1][:2]}")
            if isinstance(found, list):
                print(f"  request {place}, tokens with drafts: {found[place][0]}")
                logprobs = found[place][1]
                print(f"  request {place}, first logprobs with drafts: {logprobs and logprobs[:2]}")
        if isinstance(found, str):
            print(f"  with drafts: {found}")
    print(f"\n{num_faults} of {len(alone)} batches are answered differently with drafts")
    sys.exit(0 if num_faults else 1)


if __name__ == "__main__":
    main()
