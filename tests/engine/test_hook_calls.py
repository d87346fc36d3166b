"""What our scheduler does in each pass for requests that nobody can draft for. Counted, not timed.

`benchmarks/hook_cost.py` times it.
"""

import pytest

pytest.importorskip("vllm")
from headstart.engine.options import Sources
from rig.idle_streams import IdleStreams

pytestmark = pytest.mark.engine

BATCH, WARMUP, PASSES = 256, 5, 40


def test_requests_that_nothing_pays_for_are_asked_about_rarely(monkeypatch):
    streams = IdleStreams(BATCH, 32, Sources(), tagged=True)
    cascade = streams.scheduler._cascade
    propose, asked = cascade.propose, list[str]()
    monkeypatch.setattr(
        cascade, "propose", lambda one, *rest: asked.append(one.request.id) or propose(one, *rest)
    )
    for _ in range(WARMUP):  # sources are tried
        streams.step()
    assert len(asked) > BATCH
    asked.clear()
    for _ in range(PASSES):
        streams.step()
    assert len(set(asked)) == BATCH  # nobody is forgotten
    assert len(asked) < BATCH * PASSES / 8
    assert not any(streams.passes.drafted[-PASSES:])


def test_requests_without_tags_are_not_looked_at(monkeypatch):
    streams = IdleStreams(16, 32, Sources(), tagged=False)
    asked = []
    monkeypatch.setattr(streams.scheduler, "_hand_out", lambda *arguments: asked.append(arguments))
    for _ in range(10):
        streams.step()
    assert len(streams.passes.drafted) > 5
    assert not asked
