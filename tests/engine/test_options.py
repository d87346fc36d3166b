"""Options on their way into vLLM's engine process, and what is refused there."""

from dataclasses import replace
from pathlib import Path

import pytest

from headstart.bridges.config import BridgeConfig, FeatureSize
from headstart.engine.options import (
    EventDrafter,
    EventTower,
    SchedulerOptions,
    Sources,
    event_model,
)
from headstart.errors import DraftingError
from headstart.speculation.registry import MemoryLimits
from tests.bridges.random_bridge import save_random_bridge


@pytest.mark.parametrize(
    "options",
    [
        SchedulerOptions(),
        SchedulerOptions(Sources(("ngram", "wrong"), resync=False), "/tmp/channel"),
        SchedulerOptions(memory=MemoryLimits(1 << 20, 1 << 18)),
        SchedulerOptions(Sources(("memory", "headstart.speculation.ngram:Ngram"))),
        SchedulerOptions(Sources(warm=False)),
        SchedulerOptions(Sources(memory_log=Path("/srv/site.jsonl"))),
    ],
)
def test_they_arrive_as_they_were_sent(options):
    assert SchedulerOptions.parse(options.additional_config()) == options


@pytest.mark.parametrize("absent", [{}, {"other": 1}, None, {"headstart": None}])
def test_absent_means_all_as_usual(absent):
    assert SchedulerOptions.parse(absent) == SchedulerOptions()


def test_a_person_may_name_one_alone():
    options = SchedulerOptions.parse({"headstart": {"sources": {"ngram": False}}})
    assert options == SchedulerOptions(Sources(("memory",)))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"warp": 1}, "It knows: channel, memory_bytes, memory_tenant_bytes, sources"),
        ({"sources": {"memroy": True}}, "memory"),
        ({"sources": {"memory": "no"}}, "say true or false"),
        ({"sources": {"warm": 1}}, "say true or false"),
        ({"sources": {"memory_log": 7}}, "give a path"),
        ({"sources": {"memory_log": "site.jsonl", "warm": False}}, "switch warm on"),
        ({"channel": 7}, "path of a directory"),
        ({"sources": {"drafters": "memory"}}, "list of names"),
        ({"sources": {"drafters": ["nowhere:Drafter"]}}, "package.module:Class"),
        ({"memory_bytes": 0}, "number of bytes"),
        ({"memory_tenant_bytes": True}, "number of bytes"),
        ({"memory_tenant_bytes": "1 GB"}, "number of bytes"),
        ([], "It knows"),
    ],
)
def test_what_nobody_knows_is_refused_by_name(given, named):
    with pytest.raises(DraftingError, match=named):
        SchedulerOptions.parse({"headstart": given})


def test_a_memory_log_is_looked_at_before_an_engine_starts(tmp_path):
    file = tmp_path / "site.jsonl"
    Sources().check_files()
    with pytest.raises(DraftingError, match=r"site\.jsonl cannot be read"):
        Sources(memory_log=file).check_files()
    file.write_text('{"question": "what?", "target_tokens": [1, 2]}\n')
    Sources(memory_log=file).check_files()
    file.write_text('{"question": "what?", "target_tokens": [1, 2]}\n{"question": "what?"}\n')
    with pytest.raises(DraftingError, match="line 2"):
        Sources(memory_log=file).check_files()


def test_a_tower_needs_a_bridge_that_can_look_at_what_it_sees(tmp_path):
    tower = EventTower("an-eventgpt")
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 9}}')  # a target's
    with pytest.raises(DraftingError, match="there is none"):
        Sources().check_files(tower)
    config = BridgeConfig(8, (FeatureSize("target_last", 4, 2),), width=8, num_heads=2, hidden=8)
    blind = save_random_bridge(tmp_path / "blind", tmp_path, config)
    Sources(bridge=blind).check_files(EventDrafter("an-eventgpt"))
    with pytest.raises(DraftingError, match="collect --drafter"):
        Sources(bridge=blind).check_files(tower)
    seeing = replace(config, features=(FeatureSize("drafter", 4, 2),))
    directory = save_random_bridge(tmp_path / "seeing", tmp_path, seeing)
    Sources(bridge=directory).check_files(tower)


def test_an_event_model_by_name_is_a_tower_beside_a_bridge(tmp_path):
    assert event_model("m", {}, None) == EventDrafter("m")
    assert event_model("m", {"dtype": "float32"}, tmp_path) == EventTower("m", {"dtype": "float32"})


def test_a_drafter_of_no_tokens_is_refused():
    with pytest.raises(DraftingError, match="leave the drafter out"):
        EventDrafter("model", max_tokens=0)


def test_arguments_that_do_not_travel_are_refused_before_a_process_starts():
    pytest.importorskip("zmq")
    from headstart.engine.drafter.channel import DraftChannel
    from headstart.engine.drafter.spec import DrafterSpec

    spec = DrafterSpec(
        "model", {"dtype": "float32", "seed": 3}, 9, DraftChannel("/tmp/channel"), (1, 2)
    )
    for told in (spec, replace(spec, tower_only=True)):
        assert DrafterSpec.parse(told.argument()) == told
    with pytest.raises(DraftingError, match="command line"):
        DrafterSpec("model", {"dtype": object()}, 9, DraftChannel("/tmp/channel")).argument()
