"""The two models in training: pictures and packed questions in, a loss out; saved for vLLM."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from headstart_events.rendering import BACKGROUND
from headstart_lab.training.attention import PACKED
from headstart_lab.training.packing import Packed
from headstart_lab.training.pixels import frame_processor, pixels, slice_processor
from headstart_lab.training.sizes import DrafterSize, TargetSize
from headstart_lab.training.template import Template


class Learner(ABC):
    """One of the two models with its tokenizer and image processor. Not thread-safe."""

    name: str
    model: Any
    template: Template

    @property
    @abstractmethod
    def llama(self) -> Any:
        """The language model without its head."""

    @property
    @abstractmethod
    def vision_modules(self) -> list[nn.Module]:
        """The modules that turn pixels into the clip's tokens."""

    @property
    @abstractmethod
    def grid(self) -> int:
        """Patches along each side of a picture."""

    @property
    def width(self) -> int:
        """The hidden size of the language model."""
        return int(self.llama.config.hidden_size)

    @abstractmethod
    def num_tokens(self, num_pictures: int) -> int:
        """How many tokens a clip of that many pictures takes."""

    @abstractmethod
    def encode_clips(self, clips: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 ``[clips, pictures, height, width, 3]`` to tokens ``[clips, tokens, hidden]``."""

    def encode_clip(self, pictures: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 ``[pictures, height, width, 3]`` to the clip's tokens ``[tokens, hidden]``."""
        return self.encode_clips(pictures[None])[0]

    @abstractmethod
    def save(self, directory: Path, dtype: torch.dtype = torch.bfloat16) -> None:
        """Write a checkpoint that `headstart.models` loads."""

    def loss(self, packed: Packed, pictures: NDArray[np.uint8]) -> torch.Tensor:
        """The sum of cross entropies over all answers' tokens, float32."""
        self.llama.config._attn_implementation = PACKED
        hidden = self.llama(
            inputs_embeds=self._embed(packed, pictures)[None],
            position_ids=packed.positions[None],
            use_cache=False,
            packed_prefix=packed.prefix_length,
            packed_lengths=packed.lengths,
        ).last_hidden_state[0]
        # The head is as wide as the vocabulary, so it runs only at the places that are scored.
        scores = self.model.lm_head(hidden[packed.scored])
        return cross_entropy(scores.float(), packed.targets, reduction="sum")

    def _embed(self, packed: Packed, pictures: NDArray[np.uint8]) -> torch.Tensor:
        embed = self.llama.get_input_embeddings()
        clip = self.encode_clip(pictures)
        return torch.cat([embed(packed.before), clip.float(), embed(packed.questions)])


class TargetLearner(Learner):
    """The target: transformers' Video-LLaVA."""

    name = "target"

    def __init__(self, size: TargetSize, tokenizer: Any) -> None:
        self.size, self.tokenizer = size, tokenizer
        self.model = size.build(tokenizer)
        self.template = Template.of_target(tokenizer)
        self._processor = frame_processor(size.tower.image_size)
        # Unused in training; `save` writes it as a copy of the video tower.
        self.model.model.image_tower.requires_grad_(False)
        self.model.model.video_tower.config._attn_implementation = PACKED

    @property
    def llama(self) -> Any:
        """The language model without its head."""
        return self.model.model.language_model

    @property
    def vision_modules(self) -> list[nn.Module]:
        """The video tower and the projector."""
        return [self.model.model.video_tower, self.model.model.multi_modal_projector]

    @property
    def grid(self) -> int:
        """Patches along each side of a frame."""
        return self.size.tower.grid

    def num_tokens(self, num_pictures: int) -> int:
        """Each frame has tokens of its own."""
        return num_pictures * self.size.tower.tokens_per_picture

    def encode_clips(self, clips: NDArray[np.uint8]) -> torch.Tensor:
        """Frames to the clips' tokens."""
        values = pixels(
            clips.reshape(-1, *clips.shape[2:]), self.size.tower.image_size, self._processor
        )
        features: torch.Tensor = self.model.model.get_video_features(values[None]).pooler_output
        return features.reshape(len(clips), -1, self.width)

    def save(self, directory: Path, dtype: torch.dtype = torch.bfloat16) -> None:
        """As transformers does, the image tower equal to the video tower."""
        inner = self.model.model
        inner.image_tower.load_state_dict(inner.video_tower.state_dict())
        state = {name: tensor.to(dtype) for name, tensor in self.model.state_dict().items()}
        before, self.model.config.dtype = self.model.config.dtype, dtype
        self.model.save_pretrained(directory, state_dict=state)
        self.model.config.dtype = before
        self.tokenizer.save_pretrained(directory)
        self._processor.save_pretrained(directory)


class DrafterLearner(Learner):
    """The drafter: our EventGPT.

    Pictures of events are nearly all white, and CLIP's normalisation puts white far from zero. Each
    step of the patch embedding would then move all patches alike by more than the events do, and
    after a hundred steps the tower no longer tells pictures apart. So white is zero in training.
    The saved checkpoint takes pictures with white as it is: what white adds to a patch embedding is
    subtracted from the position embeddings.
    """

    name = "drafter"

    def __init__(self, size: DrafterSize, tokenizer: Any) -> None:
        self.size, self.tokenizer = size, tokenizer
        self.model = size.build(tokenizer)
        self.template = Template.of_drafter(tokenizer)
        self._processor = slice_processor(size.tower.image_size)
        edge = size.tower.patch_size
        paper = np.full((1, edge, edge, 3), BACKGROUND, dtype=np.uint8)
        self._paper = pixels(paper, edge, self._processor)
        with torch.no_grad():
            # At first white adds nothing, so what `save` subtracts stays small and exact in bf16.
            weight = self._embeddings.patch_embedding.weight
            white = self._paper / self._paper.norm()
            weight -= (weight * white).sum(dim=(1, 2, 3), keepdim=True) * white

    @property
    def llama(self) -> Any:
        """The language model without its head."""
        return self.model.model

    @property
    def vision_modules(self) -> list[nn.Module]:
        """The tower, the projector and the adaptor."""
        inner = self.model.model
        return [inner.visual_tower, inner.visual_projector, inner.feature_adaptor]

    @property
    def grid(self) -> int:
        """Patches along each side of a slice."""
        return self.size.tower.grid

    def num_tokens(self, num_pictures: int) -> int:
        """One token a slice, and one a patch, averaged over the slices."""
        return num_pictures + self.size.tower.tokens_per_picture

    def encode_clips(self, clips: NDArray[np.uint8]) -> torch.Tensor:
        """Slices to the windows' tokens."""
        values = pixels(
            clips.reshape(-1, *clips.shape[2:]), self.size.tower.image_size, self._processor
        )
        values = (values - self._paper[:, :, :1, :1]).unflatten(0, clips.shape[:2])
        tokens: torch.Tensor = self.model.event_tokens(values)
        return tokens

    @torch.no_grad()
    def save(self, directory: Path, dtype: torch.dtype = torch.bfloat16) -> None:
        """Under the published names, for pictures with a white background."""
        positions = self._embeddings.position_embedding.weight
        kept = positions.clone()
        # With the weights as rounded for saving, so that white adds exactly what is subtracted.
        weight = self._embeddings.patch_embedding.weight.to(dtype).float()
        positions[1:] -= (weight * self._paper).sum(dim=(1, 2, 3))
        self.model.save(directory, self.tokenizer, dtype)
        positions.copy_(kept)

    @property
    def _embeddings(self) -> Any:
        return self.model.model.visual_tower["visual_tower"]["vision_model"].embeddings
