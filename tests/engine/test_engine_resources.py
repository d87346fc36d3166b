"""What an engine is started with, beside its own arguments."""

import os

from headstart.engine.engine_resources import EngineResources, few_kernels

KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def test_kernels_are_few_unless_the_caller_has_said_how_many():
    assert few_kernels({}).environment == {KERNELS: "128"}
    assert few_kernels({KERNELS: "7"}) == EngineResources()


def test_the_environment_is_as_it_was_when_the_engine_is_up(monkeypatch):
    monkeypatch.setenv("HEADSTART_THERE", "before")
    with EngineResources({"HEADSTART_THERE": "taken", "HEADSTART_NEW": "1"}).taken():
        assert (os.environ["HEADSTART_THERE"], os.environ["HEADSTART_NEW"]) == ("taken", "1")
    assert os.environ["HEADSTART_THERE"] == "before"
    assert "HEADSTART_NEW" not in os.environ
