"""The parts of vLLM's input processing that all models of picture sequences share."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from vllm.multimodal.processing import BaseDummyInputsBuilder, BaseProcessingInfo

from headstart.models.geometry import PictureGeometry


class PicturesProcessingInfo(BaseProcessingInfo):
    """Answers vLLM's questions about a model before anything is processed."""

    @abstractmethod
    def get_geometry(self) -> PictureGeometry:
        """The number of pictures and tokens of this checkpoint's clips."""

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Any number of clips; only the context limits them."""
        return {"video": None}


class PicturesDummyInputsBuilder(BaseDummyInputsBuilder[PicturesProcessingInfo]):
    """Makes blank clips for vLLM's memory profile."""

    placeholder: ClassVar[str]

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        """One placeholder a clip."""
        return self.placeholder * mm_counts.get("video", 0)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Clips of the model's own size and length."""
        geometry = self.info.get_geometry()
        return {
            "video": self._get_dummy_videos(
                width=geometry.image_size,
                height=geometry.image_size,
                num_frames=geometry.num_pictures,
                num_videos=mm_counts.get("video", 0),
                overrides=mm_options.get("video"),
            )
        }
