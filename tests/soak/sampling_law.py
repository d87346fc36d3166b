"""Do drafts leave the law of sampled answers as it is? Counted on a vocabulary small enough to.

    python -m tests.soak.sampling_law --samples 200000 [--mended | --unguarded]

A random Llama of eight tokens says three of them; the chance of each of the 512 outcomes is known
from transformers. vLLM samples with drafts handed to every request, and the counts are held
against the law by chi-square. vLLM 0.32 spreads temperatures wrongly on a CPU
(`headstart.engine.withheld_drafts`), so there headstart withholds drafts from sampled answers; with
--mended the kernel is put right, in this process, and drafts are verified; with --unguarded they
are verified with the kernel as it is. Prints a JSON line last.
"""

import argparse
import itertools
import json
import math
import os
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

# The engine in this very process, so that its kernel can be put right here.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import torch

NUM_TOKENS, LENGTH = 8, 3
PROMPT = [3, 5, 4]
TEMPERATURE = 2.0  # flat enough that every outcome is seen
MIN_EXPECTED = 5.0  # outcomes rarer than this are counted together


def main() -> None:
    """Sample, count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    kernel = parser.add_mutually_exclusive_group()
    kernel.add_argument("--mended", action="store_true")
    kernel.add_argument("--unguarded", action="store_true")
    options = parser.parse_args()
    if options.mended:
        mend()
    if options.unguarded:
        from headstart.engine import withheld_drafts

        withheld_drafts.verifies_sampled = lambda: True  # the very check that is shown to be needed
    with tempfile.TemporaryDirectory() as directory:
        law = save_model(Path(directory))
        counts, num_accepted = sampled(Path(directory), options)
    statistic, freedom = chi_square(law, counts, options.samples)
    figures = {
        "samples": options.samples,
        "mended": options.mended,
        "unguarded": options.unguarded,
        "accepted_tokens": num_accepted,
        "chi_square": round(statistic, 1),
        "degrees_of_freedom": freedom,
        "p_value": p_value(statistic, freedom),
    }
    print(json.dumps(figures))


def save_model(directory: Path) -> dict[tuple[int, ...], float]:
    """A random Llama, and the chance of everything it may say."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=NUM_TOKENS,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(directory)
    law = {}
    with torch.no_grad():
        for first, second in itertools.product(range(NUM_TOKENS), repeat=2):
            ids = torch.tensor([[*PROMPT, first, second]])
            scores = model(ids).logits[0, len(PROMPT) - 1 :].double() / TEMPERATURE
            chances = torch.softmax(scores, dim=-1)
            for third in range(NUM_TOKENS):
                chance = chances[0, first] * chances[1, second] * chances[2, third]
                law[first, second, third] = float(chance)
    return law


def sampled(directory: Path, options: argparse.Namespace) -> tuple[Counter[tuple[int, ...]], int]:
    """How often each outcome was said, and how many tokens of it were drafted right."""
    from vllm import LLM, SamplingParams

    from headstart.engine.options import SchedulerOptions, Sources
    from headstart.engine.request_record import Report
    from headstart.engine.startup import drafting_arguments

    llm = LLM(
        str(directory),
        dtype="float32",
        enforce_eager=True,
        skip_tokenizer_init=True,
        max_num_seqs=options.batch,
        max_model_len=32,
        seed=options.seed,
        kv_cache_memory_bytes=2**26,
        enable_prefix_caching=False,
        # Random drafts never pay; here they are to be verified all the same.
        **drafting_arguments(LENGTH, SchedulerOptions(Sources(abstain=False)), {}),
    )
    chance = Random(options.seed)
    counts: Counter[tuple[int, ...]] = Counter()
    num_accepted = 0
    for start in range(0, options.samples, 16 * options.batch):
        size = min(16 * options.batch, options.samples - start)
        params = [
            SamplingParams(
                temperature=TEMPERATURE,
                max_tokens=LENGTH,
                ignore_eos=True,
                detokenize=False,
                extra_args={"headstart": {"draft": chance.choices(range(NUM_TOKENS), k=LENGTH)}},
            )
            for _ in range(size)
        ]
        prompts = [{"prompt_token_ids": PROMPT}] * size
        for output in llm.generate(prompts, params, use_tqdm=False):
            counts[tuple(output.outputs[0].token_ids)] += 1
            report = Report.parse(output.kv_transfer_params)
            num_accepted += sum(report.accepted) if report else 0
    return counts, num_accepted


def chi_square(
    law: dict[tuple[int, ...], float], counts: Counter[tuple[int, ...]], num_samples: int
) -> tuple[float, int]:
    """The statistic and its degrees of freedom; rare outcomes are one."""
    pairs = [(counts[outcome], chance * num_samples) for outcome, chance in law.items()]
    common = [pair for pair in pairs if pair[1] >= MIN_EXPECTED]
    rare = [pair for pair in pairs if pair[1] < MIN_EXPECTED]
    if rare:
        common.append((sum(seen for seen, _ in rare), sum(expected for _, expected in rare)))
    return sum((seen - expected) ** 2 / expected for seen, expected in common), len(common) - 1


def p_value(statistic: float, freedom: int) -> float:
    """The chance of a statistic as large, by Wilson and Hilferty's approximation."""
    spread = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def mend() -> None:
    """Put the kernel that spreads values over drafted tokens right, for numbers of any kind."""
    from vllm.utils import cpu_triton_utils

    def expand(
        output: torch.Tensor,
        values: torch.Tensor,
        ends: torch.Tensor,
        replace_from: float,
        replace_to: float,
        most: object = None,
    ) -> None:
        lengths = torch.diff(ends, prepend=ends.new_zeros(1))
        values = torch.where(values == replace_from, replace_to, values)
        output.copy_(torch.repeat_interleave(values, lengths.long()).to(output.dtype))

    cpu_triton_utils._expand_kernel_impl = expand


if __name__ == "__main__":
    main()
