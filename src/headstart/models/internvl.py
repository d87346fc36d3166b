"""vLLM's own InternVL3, with a processor that cuts videos into frames."""

from collections.abc import Mapping, Sequence

from vllm.model_executor.models.interns1 import (
    InternS1DummyInputsBuilder,
    InternS1ForConditionalGeneration,
    InternS1MultiModalProcessor,
    InternS1ProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems
from vllm.multimodal.processing import PromptReplacement, PromptUpdate, PromptUpdateDetails

from headstart.models.video_parts import VideoPartsProcessor


class FramesProcessor(VideoPartsProcessor, InternS1MultiModalProcessor):
    """Cuts videos into frames and leaves the rest to vLLM."""

    @property
    def video_token_id(self) -> int:
        (token,) = self._ids(self.info.get_hf_processor().video_token)
        return token

    def placeholders(self, num_parts: int) -> list[int]:
        """Each frame after its number, on a line of its own."""
        found: list[int] = []
        for number in range(1, num_parts + 1):
            found += self._ids(f"{'' if number == 1 else chr(10)}Frame{number}: ")
            found.append(self.video_token_id)
        return found

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, object],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        of_pictures, _ = super()._get_prompt_updates(
            mm_items, hf_processor_mm_kwargs, out_mm_kwargs
        )
        processor = self.info.get_hf_processor(**hf_processor_mm_kwargs)
        start, end = self._ids(processor.start_image_token), self._ids(processor.end_image_token)
        frame = [*start, *[self.video_token_id] * processor.image_seq_length, *end]
        return [
            of_pictures,
            PromptReplacement(
                modality="video",
                target=[self.video_token_id],
                replacement=PromptUpdateDetails.select_token_id(frame, self.video_token_id),
            ),
        ]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.info.get_tokenizer().encode(text, add_special_tokens=False)
        return ids


@MULTIMODAL_REGISTRY.register_processor(
    FramesProcessor, info=InternS1ProcessingInfo, dummy_inputs=InternS1DummyInputsBuilder
)
class InternVlInFrames(InternS1ForConditionalGeneration):
    """The published architecture; only its prompts are cut otherwise."""
