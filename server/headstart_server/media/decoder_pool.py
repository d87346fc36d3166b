"""Builds the sandbox's worker pool for this server's model, vocabulary and limits."""

import logging
import math
import os
from typing import Any

from headstart.live.sources.confined.confinement import ResourceLimits, has_filter
from headstart.media.video import FORMATS
from headstart_server.media.decoder import max_output_bytes
from headstart_server.sandbox.pool import Pool, PoolSize
from headstart_server.sandbox.worker import MAX_CPU_S, BufferSizes
from headstart_server.settings import Limits, SettingsError

_log = logging.getLogger("headstart")


def decoder_pool(limits: Limits, model_config: Any, tokenizer: Any, is_open: bool) -> Pool:
    """A pool, not yet started, that decodes media as vLLM would for this model."""
    from vllm.multimodal.video import VIDEO_LOADER_REGISTRY
    from vllm.multimodal.video import get_video_loader_backend_for_processor as loader_for
    from vllm.transformers_utils.processor import get_video_processor_cls_name

    if not has_filter():
        _log.warning(
            "decoders run without a seccomp filter, which headstart has for Linux on x86-64 and"
            " ARM64 only; limits on files, memory and time hold"
        )
    multimodal = model_config.multimodal_config
    options = dict(multimodal.media_io_kwargs or {}) if multimodal is not None else {}
    video = dict(options.get("video", {}))
    if multimodal is not None:
        usual = loader_for(get_video_processor_cls_name(model_config))
        video = {**({"video_backend": usual} if usual else {}), **video}
    for name in (video.get("video_backend"), video.get("backend")):
        if name and VIDEO_LOADER_REGISTRY.backend_requires_gpu(name):
            raise SettingsError(
                f"{name} decodes on a GPU, which no confined process can reach; take it out of"
                " media_io_kwargs"
            )
    # One tenant occupies at most half of the workers, unless all clients are one tenant.
    max_of_tenant = limits.max_decoders if is_open else max(1, limits.max_decoders // 2)
    return Pool(
        {
            "media_io_kwargs": {**options, "video": video},
            "vocabulary": _vocabulary(model_config, tokenizer),
        },
        environment(limits),
        PoolSize(limits.max_decoders, max_of_tenant),
        BufferSizes(
            max(limits.max_body_bytes, limits.max_media_file_bytes), max_output_bytes(limits)
        ),
        ResourceLimits(
            cpu_s=math.ceil((2 * limits.decode_s + MAX_CPU_S) * (os.cpu_count() or 1)),
            memory_bytes=limits.decoder_bytes,
            has_threads=True,  # FFmpeg decodes a file with several
        ),
    )


def environment(limits: Limits) -> dict[str, str]:
    """Variables for OpenCV and vLLM; FFmpeg reads only containers that hold their own frames."""
    formats = ",".join(FORMATS)
    return {
        "OPENCV_FFMPEG_CAPTURE_OPTIONS": f"format_whitelist;{formats}|protocol_whitelist;file",
        "OPENCV_LOG_LEVEL": "SILENT",
        "VLLM_MAX_IMAGE_PIXELS": str(limits.max_frame_pixels),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }


def _vocabulary(model_config: Any, tokenizer: Any) -> str | None:
    """For compiling grammars as the engine will; none where xgrammar cannot read the tokenizer."""
    try:
        from xgrammar import TokenizerInfo

        info = TokenizerInfo.from_huggingface(tokenizer, vocab_size=model_config.get_vocab_size())
        return str(info.serialize_json())
    except Exception as error:
        _log.warning("grammars are bounded by size only, not by time: %s", error)
        return None
