"""A tower beside a target: which bridges it can show things to, and what its process is told."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from headstart import Sources
from headstart.engine.draft_model import draft_model
from headstart.errors import DraftingError
from headstart_events.beside.event_model import EventDraftModel
from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.tower import EventTower
from tests.bridge.random_bridge import save_random_bridge

ANY_TARGET = SimpleNamespace()  # a tower says no words that it could misspell


def test_a_tower_needs_a_bridge_that_can_look_at_what_it_sees(tmp_path):
    tower = EventTower("an-eventgpt")
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 9}}')  # a target's
    with pytest.raises(DraftingError, match="there is none"):
        tower.check(ANY_TARGET, Sources())
    config = BridgeConfig(8, (FeatureSize("target_last", 4, 2),), width=8, num_heads=2, hidden=8)
    blind = save_random_bridge(tmp_path / "blind", tmp_path, config)
    with pytest.raises(DraftingError, match="collect --draft-model"):
        tower.check(ANY_TARGET, Sources((f"bridge={blind}",)))
    seeing = replace(config, features=(FeatureSize("drafter", 4, 2),))
    directory = save_random_bridge(tmp_path / "seeing", tmp_path, seeing)
    tower.check(ANY_TARGET, Sources((f"bridge={directory}",)))


def test_a_draft_model_by_name_is_a_tower_beside_a_bridge(tmp_path):
    assert draft_model("m", {}, Sources()) == EventDraftModel("m")
    seeing = Sources(("memory", f"bridge={tmp_path}"))
    assert draft_model("m", {"dtype": "float32"}, seeing) == EventTower("m", {"dtype": "float32"})


def test_a_draft_model_of_no_tokens_is_refused():
    with pytest.raises(DraftingError, match="leave the drafter out"):
        EventDraftModel("model", max_tokens=0)


@pytest.fixture
def channel():
    pytest.importorskip("zmq")
    from headstart.engine.drafts.channel import DraftChannel

    return DraftChannel("/tmp/channel")


def test_what_a_process_is_told_arrives_as_it_was_sent(channel):
    pytest.importorskip("vllm")
    for model in (EventDraftModel("m", {"dtype": "float32", "seed": 3}, 9), EventTower("m")):
        spec = replace(model.spec(channel), cores=(1, 2))
        assert type(spec).parse(spec.argument()) == spec
    assert spec.vllm["worker_extension_cls"]


def test_arguments_that_do_not_travel_are_refused_before_a_process_starts(channel):
    spec = EventDraftModel("model", {"dtype": object()}).spec(channel)
    with pytest.raises(DraftingError, match="command line"):
        spec.argument()
