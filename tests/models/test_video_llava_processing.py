"""The preprocessor of Video-LLaVA's frames, without an engine."""

from types import SimpleNamespace

import pytest

pytest.importorskip("vllm", reason="needs an engine: headstart[cpu]")
from transformers.models.auto import image_processing_auto
from vllm.config import ModelConfig
from vllm.transformers_utils.processor import cached_get_image_processor

from headstart.models.registration import register
from headstart.models.video_llava.model import VideoLlavaProcessingInfo


def test_it_is_loaded_without_a_false_word_about_torchvision(tiny_target, monkeypatch):
    """`headstart doctor` says whether torchvision works. Nothing else may say that it does not."""
    register()
    said = []
    monkeypatch.setattr(image_processing_auto.logger, "warning_once", said.append)
    cached_get_image_processor.cache_clear()
    info = VideoLlavaProcessingInfo(SimpleNamespace(model_config=ModelConfig(str(tiny_target))))
    assert type(info.get_image_processor()).__name__ == "VideoLlavaImageProcessor"
    assert said == []
