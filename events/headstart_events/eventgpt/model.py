"""EventGPT for vLLM: CLIP over rendered slices, projector, adaptor, pooling, Llama."""

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.models.clip import CLIPVisionModel
from vllm.model_executor.models.interfaces import MultiModalEmbeddings
from vllm.model_executor.models.module_mapping import MultiModelKeys
from vllm.model_executor.models.utils import (
    WeightsMapper,
    init_vllm_registered_model,
    maybe_prefix,
)
from vllm.multimodal import MULTIMODAL_REGISTRY

from headstart.models.vision_language import Projector, VisionLanguageModel
from headstart_events.eventgpt.geometry import event_geometry
from headstart_events.eventgpt.processing import (
    EventGptDummyInputsBuilder,
    EventGptMultiModalProcessor,
    EventGptProcessingInfo,
)
from headstart_events.eventgpt.prompt import EVENT_PLACEHOLDER
from headstart_events.eventgpt.weights import CANONICAL_NAMES


def pool(features: torch.Tensor) -> torch.Tensor:
    """``[slices, places, size]`` to one token a slice, then one token a place."""
    return torch.cat([features.mean(dim=1), features.mean(dim=0)])


@MULTIMODAL_REGISTRY.register_processor(
    EventGptMultiModalProcessor,
    info=EventGptProcessingInfo,
    dummy_inputs=EventGptDummyInputsBuilder,
)
class EventChatModel(VisionLanguageModel):
    """The published architecture, under the name its config gives it."""

    hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex=CANONICAL_NAMES)

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        """The placeholder of a chat message's events in the prompt."""
        if modality.startswith("video"):
            return EVENT_PLACEHOLDER
        raise ValueError(
            f"EventGPT takes the rendered slices of a window as a video, and was given {modality}."
        )

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        quant_config = vllm_config.quant_config
        self.config = config
        event_geometry(config)  # raises if the config is wrong

        with self._mark_tower_model(vllm_config, "video"):
            self.visual_tower = CLIPVisionModel(
                config.vision_config,
                quant_config=quant_config,
                require_post_norm=False,
                prefix=maybe_prefix(prefix, "visual_tower"),
            )
            self.visual_projector = Projector(
                config.vision_config.hidden_size,
                config.hidden_size,
                "gelu",
                bias=True,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, "visual_projector"),
            )
            self.feature_adaptor = ReplicatedLinear(
                config.hidden_size,
                config.hidden_size,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, "feature_adaptor"),
            )
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                hf_config=config,
                prefix=maybe_prefix(prefix, "language_model"),
                architectures=["LlamaForCausalLM"],
            )

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """Windows of ``[slices, 3, size, size]`` pixels to one ``[tokens, hidden]`` each."""
        windows = kwargs.get("pixel_values_events")
        if windows is None:
            return []
        assert isinstance(windows, torch.Tensor | list)
        lengths = [len(window) for window in windows]
        features = self.visual_projector(self.visual_tower(torch.cat(list(windows))))
        features, _ = self.feature_adaptor(features)
        return [pool(window) for window in features.split(lengths)]

    def get_mm_mapping(self) -> MultiModelKeys:
        """Which modules are language model, connector and tower, for LoRA."""
        return MultiModelKeys.from_string_field(
            language_model="language_model",
            connector=["visual_projector", "feature_adaptor"],
            tower_model="visual_tower",
        )
