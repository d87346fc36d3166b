"""The feed's own rules: what goes to the scheduler, and what it keeps."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.engine


@pytest.fixture
def ends(monkeypatch):
    """The worker's end and the scheduler's."""
    from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole

    from headstart_research.bridge import feature_feed

    monkeypatch.setattr(feature_feed, "MAX_BYTES", 100)
    role = SimpleNamespace(is_ec_producer=True, is_ec_consumer=True)
    config = SimpleNamespace(ec_transfer_config=role)
    return tuple(
        feature_feed.FeatureFeed(config, role)
        for role in (ECConnectorRole.WORKER, ECConnectorRole.SCHEDULER)
    )


def step(ends, **items):
    """A step in which the tower computed these, carried as vLLM does."""
    import pickle

    import torch
    from vllm.v1.outputs import ECConnectorOutput

    worker, scheduler = ends
    for name, value in items.items():
        worker.save_caches({name: torch.full((2, 10), value)}, name)  # 40 bytes as float16
    meta = worker.build_connector_worker_meta()
    carried = pickle.loads(pickle.dumps(ECConnectorOutput(ec_connector_worker_meta=meta)))
    scheduler.update_connector_output(carried)
    return scheduler


def test_a_clip_is_known_when_all_of_it_was_seen(ends):
    scheduler = step(ends, a=1.5)
    assert scheduler.known(["a", "b"]) is None
    assert step(ends) is scheduler  # a step without a picture
    step(ends, b=2.5)
    assert [item[0, 0] for item in scheduler.known(["b", "a", "b"])] == [2.5, 1.5, 2.5]
    assert scheduler.known([]) is None


def test_the_items_looked_at_last_are_kept(ends):
    scheduler = step(ends, a=1.0, b=2.0)
    scheduler.known(["a"])
    step(ends, c=3.0)
    assert scheduler.known(["a", "c"]) is not None
    assert scheduler.known(["b"]) is None


def test_what_is_carried_does_not_change_with_vllms_cache(ends):
    import torch

    worker, _ = ends
    computed = torch.ones(2, 10)
    worker.save_caches({"a": computed}, "a")
    computed.zero_()
    assert worker.build_connector_worker_meta().items["a"][0, 0] == 1.0
    assert worker.build_connector_worker_meta() is None


def test_large_pictures_are_pooled_to_what_a_bridge_looks_at():
    import torch

    from headstart_research.bridge.feature_feed import MAX_TOKENS, pooled

    tokens = torch.arange(3 * MAX_TOKENS, dtype=torch.float32)[:, None].repeat(1, 4)
    kept = pooled(tokens)
    assert kept.shape == (MAX_TOKENS, 4)
    assert kept.dtype == np.float16
    assert kept[0, 0] == 1.0
    assert pooled(tokens[:5]).shape == (5, 4)


@dataclass(eq=False)
class Drafted:
    name: str
    is_over: bool = False


class Shown:
    """A cascade that notes who was shown a clip."""

    def __init__(self):
        self.requests = []

    def see(self, drafted, features):
        self.requests.append(drafted.name)


def asked(name, *items):
    """The state of a request about these items; the cascade knows it by its name."""
    places = [
        SimpleNamespace(identifier=item, mm_position=SimpleNamespace(offset=place))
        for place, item in enumerate(items)
    ]
    request = SimpleNamespace(mm_features=places)
    return SimpleNamespace(request=request, drafted=Drafted(name))


def test_a_clip_is_shown_with_the_step_that_completes_it(ends):
    from headstart_research.bridge.scheduler import SeenClips

    shown, (_, scheduler) = Shown(), ends
    clips = SeenClips(scheduler, shown)
    states = [asked("first", "a", "b"), asked("over", "b"), asked("second", "b", "a")]
    for state in states:
        clips.begin(state)
    states[1].drafted.is_over = True
    for brought, expected in (({"a": 1.0}, []), ({}, []), ({"b": 2.0}, ["first", "second"])):
        step(ends, **brought)
        clips.step_ended()
        assert shown.requests == expected
    clips.begin(asked("late", "a"))
    assert shown.requests[2:] == ["late"]
    step(ends, a=3.0)
    clips.step_ended()
    assert shown.requests[3:] == []  # none is shown its clip again


def test_a_step_looks_only_for_clips_of_which_it_brought_a_part(ends, monkeypatch):
    from headstart_research.bridge.scheduler import SeenClips

    _, scheduler = ends
    clips = SeenClips(scheduler, Shown())
    states = [
        asked(f"waits-{number}", *(f"{number}/{place}" for place in range(32)))
        for number in range(200)
    ]
    for state in states:
        clips.begin(state)
    asked_for = []
    known = scheduler.known
    monkeypatch.setattr(scheduler, "known", lambda names: asked_for.append(names) or known(names))
    for _ in range(3):
        step(ends)
        clips.step_ended()
    assert asked_for == []
    step(ends, **{"7/3": 1.0})
    clips.step_ended()
    assert len(asked_for) == 1
