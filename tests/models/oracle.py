"""transformers' own Video-LLaVA, and the clips both sides are asked about."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headstart.models.video_llava.view import video_prompt

BLOCK_SIZE = 32

QUESTIONS = (
    "What is happening?",
    "Is it safe to turn right?",
    "Describe the road, the weather and whoever is near it.",
    "How many people wait?",
)


@dataclass(frozen=True)
class Asked:
    """One prompt in the form vLLM takes it."""

    frames: np.ndarray
    question: str

    @property
    def prompt(self) -> dict:
        return {
            "prompt": video_prompt(self.question),
            "multi_modal_data": {"video": self.frames},
        }


def random_clip(rng: np.random.Generator, num_frames: int = 8) -> np.ndarray:
    """Frames of random size and contents; smooth patches, so that resizing keeps them apart."""
    height, width = rng.integers(60, 120, 2)
    coarse = rng.integers(0, 256, (num_frames, 6, 8, 3), dtype=np.uint8)
    rows = np.arange(height) * 6 // height
    columns = np.arange(width) * 8 // width
    return coarse[:, rows][:, :, columns]


def random_asked(rng: np.random.Generator, count: int) -> list[Asked]:
    return [
        Asked(random_clip(rng), f"{QUESTIONS[i % len(QUESTIONS)]} {rng.integers(1000)}")
        for i in range(count)
    ]


def num_same_tokens(first, second) -> int:
    """How far two requests' prompts are the same."""
    pairs = zip(first.prompt_token_ids, second.prompt_token_ids, strict=False)
    return next(i for i, (a, b) in enumerate(pairs) if a != b)


class Oracle:
    """transformers alone: its processor's parts, its model, its greedy decoding, float32."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import (
            AutoImageProcessor,
            AutoTokenizer,
            VideoLlavaForConditionalGeneration,
        )

        self.tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        self.image_processor = AutoImageProcessor.from_pretrained(checkpoint)
        self.model = VideoLlavaForConditionalGeneration.from_pretrained(
            checkpoint, dtype=torch.float32
        ).eval()

    def prompt_ids(self, asked: Asked) -> list[int]:
        """The prompt as transformers' processor expands it."""
        vision = self.model.config.vision_config
        tokens = len(asked.frames) * ((vision.image_size // vision.patch_size) ** 2 + 1)
        text = asked.prompt["prompt"].replace("<video>", "<video>" * tokens)
        return self.tokenizer(text)["input_ids"]

    def answer(self, asked: Asked, max_tokens: int) -> tuple[list[int], torch.Tensor]:
        """Greedy tokens, and the logits of every step: the first row is the prefill's."""
        pixels = self.image_processor(images=list(asked.frames), return_tensors="pt")
        ids = self.prompt_ids(asked)
        out = self.model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            pixel_values_videos=pixels["pixel_values_images"][None],
            max_new_tokens=max_tokens,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        return out.sequences[0, len(ids) :].tolist(), torch.cat(out.logits)
