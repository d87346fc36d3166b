"""What vLLM's own LLaVA models can do, ours can: parallelism, LoRA, quantisation."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.oracle import Oracle, random_asked

pytestmark = pytest.mark.engine

NUM_CLIPS = 4
MAX_TOKENS = 12


def answers(checkpoint, asked, lora=None, **arguments):
    """Greedy tokens and first logits from an engine that lives only for these questions."""
    from vllm import LLM, SamplingParams

    defaults = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 8, "block_size": 32}
    llm = LLM(
        str(checkpoint),
        max_logprobs=-1,
        logprobs_mode="raw_logits",
        **(defaults | arguments),
    )
    params = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS, logprobs=-1, detokenize=False)
    try:
        outputs = llm.generate([a.prompt for a in asked], params, use_tqdm=False, lora_request=lora)
    finally:
        llm.llm_engine.engine_core.shutdown()
    completions = [output.outputs[0] for output in outputs]
    tokens = [list(completion.token_ids) for completion in completions]
    rows = [completion.logprobs[0] for completion in completions]
    return tokens, torch.tensor([[row[i].logprob for i in range(len(row))] for row in rows])


def oracle_answers(checkpoint, asked):
    oracle = Oracle(checkpoint)
    results = [oracle.answer(a, MAX_TOKENS) for a in asked]
    return [tokens for tokens, _ in results], torch.stack([logits[0] for _, logits in results])


@pytest.fixture
def two_workers(monkeypatch):
    """A core for each worker; without it vLLM wants a NUMA node each, and refuses."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("two workers need two cores")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{cores[0]}|{cores[1]}")


def test_tensor_parallel_two_says_the_same(tiny_target, two_workers, rng):
    asked = random_asked(rng, NUM_CLIPS)
    tokens, _ = answers(tiny_target, asked, tensor_parallel_size=2)
    assert tokens == oracle_answers(tiny_target, asked)[0]


@pytest.mark.nightly
def test_pipeline_parallel_two_says_the_same(tiny_target, two_workers, rng):
    # Compiled: eager on a CPU, vLLM 0.32 skips the warm-up that allocates what the stages
    # pass on, and fails for any model.
    asked = random_asked(rng, NUM_CLIPS)
    tokens, _ = answers(tiny_target, asked, pipeline_parallel_size=2, enforce_eager=False)
    assert tokens == oracle_answers(tiny_target, asked)[0]


def test_a_lora_of_the_language_model_says_what_the_merged_weights_say(tiny_target, tmp_path, rng):
    from vllm.lora.request import LoRARequest

    rank, alpha = 4, 8
    base = load_file(tiny_target / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    adapter, merged = {}, dict(base)
    for layer in range(2):
        for projection in ("q_proj", "v_proj", "o_proj"):
            name = f"model.layers.{layer}.self_attn.{projection}"
            rows, columns = base[f"language_model.{name}.weight"].shape
            down = torch.randn(rank, columns, generator=generator) * 0.2
            up = torch.randn(rows, rank, generator=generator) * 0.2
            adapter[f"base_model.model.language_model.{name}.lora_A.weight"] = down
            adapter[f"base_model.model.language_model.{name}.lora_B.weight"] = up
            merged[f"language_model.{name}.weight"] = (
                base[f"language_model.{name}.weight"] + alpha / rank * up @ down
            )
    lora = tmp_path / "lora"
    lora.mkdir()
    save_file(adapter, lora / "adapter_model.safetensors")
    (lora / "adapter_config.json").write_text(
        json.dumps(
            {
                "peft_type": "LORA",
                "r": rank,
                "lora_alpha": alpha,
                "target_modules": ["q_proj", "v_proj", "o_proj"],
            }
        )
    )
    whole = tmp_path / "merged"
    shutil.copytree(tiny_target, whole)
    save_file(merged, whole / "model.safetensors", metadata={"format": "pt"})

    asked = random_asked(rng, NUM_CLIPS)
    tokens, logits = answers(
        tiny_target, asked, LoRARequest("driver", 1, str(lora)), enable_lora=True, max_lora_rank=8
    )
    expected, expected_logits = oracle_answers(whole, asked)
    assert tokens == expected
    assert (logits - expected_logits).abs().amax() < 1e-3 * expected_logits.abs().amax()
    assert expected != oracle_answers(tiny_target, asked)[0]


def test_an_int8_checkpoint_answers_close_to_its_full_precision(tiny_target, tmp_path, rng):
    """Weights of the language model as compressed-tensors stores them: int8 and a scale a row."""
    quantised, rounded = {}, {}
    for name, weight in load_file(tiny_target / "model.safetensors").items():
        if name.startswith("language_model.") and ("proj.weight" in name):
            scale = weight.abs().amax(dim=1, keepdim=True) / 127
            integers = (weight / scale).round().clamp(-127, 127).to(torch.int8)
            quantised |= {name: integers, f"{name}_scale": scale}
            rounded[name] = integers * scale
        else:
            quantised[name] = rounded[name] = weight

    small, whole = tmp_path / "int8", tmp_path / "rounded"
    for directory, tensors in ((small, quantised), (whole, rounded)):
        shutil.copytree(tiny_target, directory)
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((small / "config.json").read_text())
    eight_bits = {"num_bits": 8, "type": "int", "symmetric": True}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "ignore": ["re:.*lm_head", "re:.*video_tower.*", "re:.*multi_modal_projector.*"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {**eight_bits, "strategy": "channel", "dynamic": False},
                "input_activations": {**eight_bits, "strategy": "token", "dynamic": True},
            }
        },
    }
    (small / "config.json").write_text(json.dumps(config))

    asked = random_asked(rng, NUM_CLIPS)
    _, logits = answers(small, asked, dtype="bfloat16")  # the CPU's int8 kernel takes no other
    _, expected = oracle_answers(whole, asked)
    # Activations are rounded to 8 bits too, so close is all that can be asked.
    assert torch.nn.functional.cosine_similarity(logits, expected).min() > 0.98
