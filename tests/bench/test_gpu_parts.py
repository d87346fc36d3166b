"""The parts of a report on a card with room for one engine, and with one that fails on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headstart import Clip, Headstart, Video
from headstart.errors import BenchError, EngineStartError
from headstart_research.bench.gpu_parts import GpuParts
from headstart_research.bench.methods import Method, Rig
from headstart_research.bench.result import BenchResult
from headstart_research.bench.run import BenchPlan
from headstart_research.bench.workloads import Item, Workload, rotating
from tests.models.oracle import random_asked

QUESTION = "What has just been seen?"
MAX_TOKENS = 8


@dataclass(frozen=True)
class SmallCard(Rig):
    """Lends the engine of the test session to as many methods at a time as have room."""

    engine: Any = None
    room: int = 2
    lost: str = ""
    """The method whose engine dies as soon as it is asked."""
    up: list[str] = field(default_factory=list)

    def start(self, method: Method) -> Headstart:
        if len(self.up) == self.room:
            raise EngineStartError("no memory is left on the card")
        self.up.append(method.name)
        lent = Lent if method.name != self.lost else Lost
        return lent(self.engine, self.up)  # type: ignore[return-value]


class Lent:
    def __init__(self, engine: Headstart, up: list[str]) -> None:
        self.session, self.target, self._up = engine.session, engine.target, up

    def __enter__(self) -> "Lent":
        return self

    def __exit__(self, *exc: object) -> None:
        self._up.pop()


class Lost(Lent):
    def __init__(self, engine: Headstart, up: list[str]) -> None:
        super().__init__(engine, up)
        self.session = self._fail

    def _fail(self, *_: object) -> None:
        raise RuntimeError("the driver is gone")


@pytest.fixture
def items(rng) -> list[Item]:
    clips = [Clip(video=Video.from_frames(asked.frames, fps=20)) for asked in random_asked(rng, 3)]
    return rotating(clips, [QUESTION])


def speed_of_files(rig: Rig, items: Sequence[Item], *more: Workload) -> tuple[BenchResult, Any]:
    whole = Workload("whole", "whole", lambda *_: items, MAX_TOKENS)
    live = Workload("live", "live", lambda *_: items, MAX_TOKENS, frame_s=0.05)
    parts = GpuParts(rig, (whole, live), (whole, *more), live, BenchPlan(rounds=1, warmup=1))
    by_name = {part.name: part for part in parts.parts()}
    result = by_name["speed, files"].run(lambda _: None)
    return BenchResult.parse(result["bench"]), result["settings"]


@pytest.mark.engine
def test_two_engines_take_turns_where_both_have_room(headstart, items):
    result, settings = speed_of_files(SmallCard("target", engine=headstart), items)
    assert result.environment["engines"] == "two at a time, asked in turn"
    assert set(result.measured()) == {("whole", "none"), ("whole", "cascade")}
    assert result.notes == ()
    assert list(settings) == ["bare vLLM", "none", "cascade"]


@pytest.mark.engine
def test_engines_are_started_one_after_the_other_where_one_has_room(headstart, items):
    result, _ = speed_of_files(SmallCard("target", engine=headstart, room=1), items)
    assert result.environment["engines"] == "one at a time"
    assert set(result.measured()) == {("whole", "none"), ("whole", "cascade")}
    (note,) = result.notes
    assert note.startswith("two engines at a time did not start")
    assert "no memory is left on the card" in note


@pytest.mark.engine
def test_what_was_measured_before_an_engine_died_is_kept(headstart, items):
    result, _ = speed_of_files(SmallCard("target", engine=headstart, lost="cascade"), items)
    assert set(result.measured()) == {("whole", "none")}
    assert result.notes == ("ended early: RuntimeError: the driver is gone",)


@pytest.mark.engine
def test_a_card_without_room_for_any_engine_fails_the_part_with_the_reason(headstart, items):
    with pytest.raises(BenchError, match="no memory is left on the card"):
        speed_of_files(SmallCard("target", engine=headstart, room=0), items)
