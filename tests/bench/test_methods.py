"""Which methods a bench can run, from what it was given."""

from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="needs the engine")

from headstart.drafters.registry import DEFAULT_DRAFTERS
from headstart_research.bench.methods import Rig

BRIDGE, LOG = Path("a-bridge"), Path("site.jsonl")


def sources_of(rig):
    return {method.name: method.sources for method in rig.methods()[0]}


def test_a_bridge_and_a_log_are_methods_of_their_own_where_they_are_given():
    plain, learned = sources_of(Rig("target")), sources_of(Rig("target", bridge=BRIDGE))
    assert learned.keys() - plain.keys() == {"bridge", "live, bridge"}
    assert learned["bridge"].drafters[-1] == f"bridge={BRIDGE}"
    assert learned["bridge"].memory_log is None
    both = sources_of(Rig("target", bridge=BRIDGE, memory_log=LOG))
    assert both.keys() - learned.keys() == {"warm", "live, warm"}
    assert both["warm"].memory_log == both["bridge"].memory_log == LOG
    assert both["warm"].drafters == DEFAULT_DRAFTERS


def test_with_an_event_model_a_bridge_is_also_shown_what_its_tower_sees():
    with_events = Rig("target", "an-eventgpt", bridge=BRIDGE).methods()[0]
    beside = {method.name for method in with_events if method.drafter}
    assert beside == {"eventgpt", "cascade", "bridge, events", "live, bridge, events"}


def test_only_what_is_fed_is_for_live_workloads():
    methods, _ = Rig("target", bridge=BRIDGE, memory_log=LOG).methods()
    fed = {method.name for method in methods if method.is_fed}
    assert {"live, bridge", "live, warm"} <= fed
    assert not fed & {"bridge", "warm"}
