"""Compares a target's greedy answers on vLLM with the same target in transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from headstart.media.clip import Clip
from headstart.models.registration import register_configs
from headstart.models.view import view_of


@dataclass(frozen=True, eq=False)
class Spoken:
    """An answer's ids, its end included, and the logits each was chosen from, ``[ids, words]``."""

    token_ids: tuple[int, ...]
    logits: Any


class ReferenceTarget:
    """transformers' Video-LLaVA: its processor, its model, its ``generate``."""

    def __init__(self, checkpoint: Path, dtype: str) -> None:
        import torch
        from transformers import (
            AutoImageProcessor,
            AutoTokenizer,
            VideoLlavaForConditionalGeneration,
        )

        register_configs()
        self._tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        self._processor = AutoImageProcessor.from_pretrained(checkpoint)
        self._model = VideoLlavaForConditionalGeneration.from_pretrained(
            checkpoint, dtype=getattr(torch, dtype)
        ).eval()
        self._view = view_of(self._model.config)

    def answer(self, clip: Clip, question: str, max_tokens: int) -> Spoken:
        """The greedy answer to one question about one clip."""
        import torch

        frames = list(self._view.pictures(clip))
        config = self._model.config
        vision = config.vision_config
        num_tokens = len(frames) * ((vision.image_size // vision.patch_size) ** 2 + 1)
        text = self._view.prompt(question).replace("<video>", "<video>" * num_tokens)
        ids = torch.tensor([self._tokenizer(text)["input_ids"]])
        pixels = self._processor(images=frames, return_tensors="pt")["pixel_values_images"]
        out = self._model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pixel_values_videos=pixels[None].to(self._model.dtype),
            max_new_tokens=max_tokens,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        said = out.sequences[0, ids.shape[1] :].tolist()
        return Spoken(tuple(said), torch.cat(out.logits).float())


@dataclass(frozen=True)
class FirstDifference:
    """Where two answers differ first, and by how much the reference preferred its own token.

    ``margin`` is the difference of the reference's two logits, or None where one answer has ended.
    """

    answer: int
    place: int
    margin: float | None


@dataclass(frozen=True)
class Parity:
    """The comparison of answers with the reference, each up to its first difference.

    ``median_margin`` is the median, over all tokens, of the margin between the reference's first
    and second choice. Compare the margins at the differences with it.
    """

    num_answers: int
    num_tokens: int
    median_margin: float
    differences: tuple[FirstDifference, ...]

    @property
    def rate(self) -> float:
        """First differences a compared token."""
        return len(self.differences) / max(1, self.num_tokens)


def compare(answers: Sequence[Sequence[int]], reference: Iterable[Spoken]) -> Parity:
    """Compare an engine's answers with the reference's, which come in the same order."""
    differences: list[FirstDifference] = []
    margins: list[float] = []
    num_tokens = 0
    for number, (answer, spoken) in enumerate(zip(answers, reference, strict=True)):
        for place, expected in enumerate(spoken.token_ids):
            num_tokens += 1
            logits = spoken.logits[place]
            best = logits.topk(2).values
            margins.append(float(best[0] - best[1]))
            said = answer[place] if place < len(answer) else None
            if said != expected:
                margin = None if said is None else float(logits[expected] - logits[said])
                differences.append(FirstDifference(number, place, margin))
                break
        else:
            if len(answer) > len(spoken.token_ids):
                differences.append(FirstDifference(number, len(spoken.token_ids), None))
    return Parity(len(answers), num_tokens, median(margins), tuple(differences))
