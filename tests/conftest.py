"""Shared ground of the tests: small real models, real engines, random clips."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from tests.browser import browser

__all__ = ["browser"]  # a fixture of every test

# Before anything imports vLLM or transformers.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

HAS_ENGINE = importlib.util.find_spec("vllm") is not None


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("engine") and not HAS_ENGINE:
            item.add_marker(pytest.mark.skip(reason="vLLM is not installed: headstart[cpu]"))


@pytest.fixture(scope="session")
def tiny_target(tmp_path_factory) -> Path:
    """An untrained Video-LLaVA of 17 tokens a frame."""
    from headstart.lab.tiny import TinyVideoLlava

    directory = tmp_path_factory.mktemp("tiny") / "target"
    TinyVideoLlava().save(directory)
    return directory


@pytest.fixture(scope="session")
def real_geometry_target(tmp_path_factory) -> Path:
    """An untrained Video-LLaVA with the published frames: 257 tokens each, 8 of them."""
    from headstart.lab.tiny import TinyVideoLlava

    directory = tmp_path_factory.mktemp("real") / "target"
    TinyVideoLlava.real_geometry().save(directory)
    return directory


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
