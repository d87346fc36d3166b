"""Greedy decoding without an engine: one prefill of the clip, then all its questions in a batch."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from headstart_lab.training.learner import Learner

MAX_TOKENS = 128


@torch.no_grad()
def answer(
    learner: Learner,
    pictures: NDArray[np.uint8],
    questions: Sequence[str],
    max_tokens: int = MAX_TOKENS,
    dtype: torch.dtype = torch.bfloat16,
) -> list[list[int]]:
    """The ids of each answer, without the end of sequence.

    They are those that transformers' ``generate`` gives for each question alone. With
    ``torch.float32`` no autocast is used.
    """
    learner.model.eval()
    learner.llama.config._attn_implementation = "sdpa"
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
        return _decode(learner, pictures, questions, max_tokens)


def _decode(
    learner: Learner, pictures: NDArray[np.uint8], questions: Sequence[str], max_tokens: int
) -> list[list[int]]:
    tokenizer, llama = learner.template.tokenizer, learner.llama
    embed = llama.get_input_embeddings()
    num_tokens = learner.num_tokens(len(pictures))
    prompts = [learner.template.prompt(question, num_tokens) for question in questions]
    clip = learner.encode_clip(pictures).float()
    prefix = torch.cat([embed(torch.tensor(prompts[0].before)), clip])
    cache = DynamicCache()
    llama(inputs_embeds=prefix[None], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(prompts))

    # Shorter questions are padded on the left, so that all answers begin in the same column.
    width = max(len(prompt.after) for prompt in prompts)
    pads = [width - len(prompt.after) for prompt in prompts]
    rows = [
        [tokenizer.pad_token_id] * pad + list(prompt.after)
        for pad, prompt in zip(pads, prompts, strict=True)
    ]
    tokens = torch.tensor(rows)
    real = torch.arange(width)[None] >= torch.tensor(pads)[:, None]
    mask = torch.cat([torch.ones(len(prompts), len(prefix), dtype=torch.bool), real], dim=1)
    positions = len(prefix) + (real.long().cumsum(1) - 1).clamp(min=0)
    said: list[list[int]] = [[] for _ in prompts]
    speaking = torch.ones(len(prompts), dtype=torch.bool)
    for _ in range(max_tokens):
        hidden = llama(
            inputs_embeds=embed(tokens),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state[:, -1]
        chosen = learner.model.lm_head(hidden).argmax(dim=1)
        speaking &= chosen != tokenizer.eos_token_id
        if not speaking.any():
            break
        for row in speaking.nonzero()[:, 0].tolist():
            said[row].append(int(chosen[row]))
        tokens = chosen[:, None]
        positions = positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones(len(prompts), 1, dtype=torch.bool)], dim=1)
    return said
