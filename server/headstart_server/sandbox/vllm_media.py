"""vLLM's own loaders of videos and pictures, imported without the rest of vLLM.

The loaders decide which frames a model sees, so vLLM's own are used. Importing them the usual way
imports all of vLLM, 350 MB whose page tables every fork would copy. They need two of vLLM's
packages only as names, so `stub_packages` puts empty ones there. All contact of the sandbox with
vLLM is in this file; `tests/sandbox/test_pool.py` compares its frames with vLLM's.
"""

import base64
import importlib.util
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from headstart.errors import MediaError


@dataclass(frozen=True)
class Bounds:
    """Limits of one video or picture, checked before it is decoded."""

    max_frame_pixels: int
    max_clip_pixels: int
    max_video_s: float

    def check_frame(self, width: int, height: int) -> None:
        if width * height > self.max_frame_pixels:
            raise MediaError(f"a frame may have {self.max_frame_pixels} pixels at most")

    def check_clip(self, num_frames: int, width: int, height: int) -> None:
        self.check_frame(width, height)
        if num_frames * width * height > self.max_clip_pixels:
            raise MediaError(
                f"the frames of a video may have {self.max_clip_pixels} pixels together;"
                f" {num_frames} of {width}x{height} have more"
            )

    def check_duration(self, duration_s: float) -> None:
        if duration_s > self.max_video_s:
            raise MediaError(f"a video may last {self.max_video_s:g} s at most")


def stub_packages() -> None:
    """Put empty packages in vLLM's place. Call it before this process imports vLLM."""
    if "vllm" in sys.modules:
        return
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise MediaError("vLLM is not installed; `headstart doctor` says how to install it")
    root = Path(spec.submodule_search_locations[0])
    for name, folder in (("vllm", root), ("vllm.multimodal", root / "multimodal")):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    vars(sys.modules["vllm"])["multimodal"] = sys.modules["vllm.multimodal"]


class Loaders:
    """vLLM's loaders with the options of this server."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]]) -> None:
        """``options``: vLLM's ``media_io_kwargs``, the video's with its ``video_backend``."""
        from vllm.multimodal.media.image import ImageMediaIO
        from vllm.multimodal.media.video import VideoMediaIO

        PIL.Image.MAX_IMAGE_PIXELS = None  # `Bounds` says how large a picture may be
        self._pictures = ImageMediaIO(**options.get("image", {}))
        self._videos = VideoMediaIO(self._pictures, **options.get("video", {}))
        self._loader = type(self._videos.video_loader)

    def picture(self, content: bytes, bounds: Bounds) -> Any:
        """The PIL image that vLLM would make of these bytes."""
        from vllm.multimodal.image import open_image

        bounds.check_frame(*open_image(io.BytesIO(content)).size)
        return self._pictures.load_bytes(content).media

    def video(
        self, content: bytes, bounds: Bounds, is_jpegs: bool
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """The frames and metadata that vLLM would make of this file."""
        if is_jpegs:
            self._check_jpegs(content, bounds)
            loaded = self._videos.load_base64("video/jpeg", content.decode("ascii"))
        else:
            self._videos.video_loader = _bounded(self._loader, bounds)()
            loaded = self._videos.load_bytes(content)
        frames, metadata = loaded.media
        if not len(frames):
            raise MediaError("no frame of it could be decoded")
        return np.asarray(frames), dict(metadata)

    def _check_jpegs(self, content: bytes, bounds: Bounds) -> None:
        from vllm.multimodal.image import open_image

        frames = content.split(b",")
        if self._videos.num_frames > 0:
            frames = frames[: self._videos.num_frames]
        for frame in frames:
            size = open_image(io.BytesIO(base64.b64decode(frame, validate=True))).size
            bounds.check_clip(len(frames), *size)


def _bounded(loader: type[Any], bounds: Bounds) -> type[Any]:
    """A subclass of vLLM's loader that checks the bounds before it decodes."""

    class BoundedLoader(loader):
        @classmethod
        def _prepare_source(cls, source: Any) -> Any:
            source = super()._prepare_source(source)
            bounds.check_duration(source.duration)
            return source

        @classmethod
        def read_frames(
            cls, cap: Any, frame_idx: list[int], total_frames_num: int, **more: Any
        ) -> Any:
            import cv2

            size = cap.get(cv2.CAP_PROP_FRAME_WIDTH), cap.get(cv2.CAP_PROP_FRAME_HEIGHT)
            bounds.check_clip(len(frame_idx), *map(int, size))
            return super().read_frames(cap, frame_idx, total_frames_num, **more)

    return BoundedLoader
