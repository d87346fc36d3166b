"""The engine's client, seen without an engine."""

from types import SimpleNamespace

import pytest

pytest.importorskip("vllm")
from transformers import LlamaConfig

from headstart.engine.engine_client import EngineClient


def test_a_client_whose_engine_is_closed_says_so_of_whatever_it_is_asked_for():
    config = SimpleNamespace(hf_config=LlamaConfig())
    client = EngineClient(
        SimpleNamespace(model_config=config, shutdown=lambda: None, errored=False)
    )
    assert client.errored is False
    assert not hasattr(client, "made_up")
    client.shutdown()
    with pytest.raises(AttributeError, match="closed and has no errored"):
        client.errored  # noqa: B018 - asking is the test
    assert not hasattr(client, "errored")
    assert not hasattr(client, "_engine")
