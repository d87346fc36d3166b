"""transformers' own chat models: their processor and template, their greedy decoding, float32."""

from pathlib import Path

import torch

from headstart import Clip
from headstart.models.view import view_of


class ChatOracle:
    """A checkpoint on transformers alone."""

    def __init__(self, checkpoint: Path, *, is_timed: bool) -> None:
        """Where it ``is_timed``, the processor is told when frames were taken."""
        from transformers import AutoModelForImageTextToText, AutoProcessor

        self.processor = AutoProcessor.from_pretrained(checkpoint)
        self.model = AutoModelForImageTextToText.from_pretrained(
            checkpoint, dtype=torch.float32
        ).eval()
        self.view = view_of(self.model.config)
        self._is_timed = is_timed

    def inputs(self, clip: Clip, question: str, system: str = ""):
        """The model's inputs for all frames of a clip, and for its pictures."""
        from transformers.video_utils import VideoMetadata

        content = [{"type": "image"}] * len(clip.pictures)
        media = {}
        if clip.pictures:
            media["images"] = list(clip.pictures)
        if clip.video is not None:
            frames, timing = self.view.media(clip)["video"]
            content.append({"type": "video"})
            media |= {"videos": [list(frames)], "do_sample_frames": timing.pop("do_sample_frames")}
            if self._is_timed:
                media["video_metadata"] = [VideoMetadata(**timing)]
        content.append({"type": "text", "text": question})
        messages = [{"role": "user", "content": content}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        text = self.processor.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return self.processor(text=[text], **media, return_tensors="pt")

    def answer(
        self, clip: Clip, question: str, max_tokens: int, system: str = ""
    ) -> tuple[int, ...]:
        """Greedy tokens."""
        inputs = self.inputs(clip, question, system)
        out = self.model.generate(**inputs, max_new_tokens=max_tokens, do_sample=False)
        return tuple(out[0, inputs["input_ids"].shape[1] :].tolist())
