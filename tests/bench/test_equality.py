"""Answers compared with bare vLLM's: equal ones, others, and how nearly the others were said."""

from typing import NamedTuple

import pytest

from headstart import Clip, Headstart, Video
from headstart.engine.question import RequestOptions
from headstart.engine.target import _margins
from headstart_research.bench.equality import (
    ALONE,
    DRAFTED,
    compare,
    first_difference,
    num_different,
)
from headstart_research.bench.workloads import Workload, rotating
from tests.models.oracle import random_asked

QUESTION = "What has just been seen?"
MAX_TOKENS = 12


class Logprob(NamedTuple):
    """As vLLM's has it."""

    logprob: float


class Lent:
    """The engine of the whole test session; everybody asks it in one options."""

    def __init__(self, engine: Headstart, **sampling: float) -> None:
        self._engine, self._sampling = engine, sampling

    def session(self, stream: str, tenant: str = "", options: RequestOptions | None = None):
        if options is not None:
            # vLLM's client ends where it is to rank tokens without text, which small models have.
            raise RuntimeError("cannot rank tokens")
        # Each engine of a comparison has caches of its own.
        tenant = f"{tenant}, {self._sampling}"
        return self._engine.session(stream, tenant, RequestOptions(sampling=self._sampling))

    def __enter__(self) -> "Lent":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


@pytest.fixture
def workloads(rng) -> tuple[Workload, Workload]:
    clips = [Clip(video=Video.from_frames(asked.frames, fps=20)) for asked in random_asked(rng, 5)]
    items = rotating(clips, [QUESTION])
    return (
        Workload("whole", "whole", lambda *_: items, MAX_TOKENS),
        Workload("live", "live", lambda *_: items, MAX_TOKENS, frame_s=0.05),
    )


@pytest.mark.engine
def test_the_same_engine_is_equal_to_itself_in_every_way(headstart, workloads):
    found = compare(lambda method: Lent(headstart), *workloads)  # type: ignore[arg-type, return-value]
    assert [(one.engine, one.answers, len(one.differences)) for one in found.comparisons] == [
        *[(DRAFTED.name, 5, 0)] * 4,
        *[(ALONE.name, 5, 0)] * 2,
    ]
    again = found.comparisons[1]
    assert again.way == "the same clips again"
    assert again.accepted_tokens > 0
    assert len(found.answers) == 5


@pytest.mark.engine
def test_other_words_are_found_with_their_place(headstart, workloads):
    """An engine that avoids repetition says other words than one that does not."""
    penalty = {DRAFTED.name: 3.0, ALONE.name: 1.0}
    found = compare(
        lambda method: Lent(headstart, repetition_penalty=penalty[method.name]),  # type: ignore[arg-type, return-value]
        *workloads,
    )
    rows = [one.as_json() for one in found.comparisons]
    num_other, num_asked = num_different(rows, DRAFTED.name)
    assert num_asked == 20
    assert num_other > 0
    assert num_different(rows, ALONE.name) == (0, 10)
    for row in rows:
        for one in row["differences"]:
            assert 0 <= one["token"] < one["num_tokens"] <= MAX_TOKENS
            assert one["margin"] is None  # it could not be asked for, and the rest is complete


def test_a_margin_is_what_the_first_token_has_over_the_second():
    ranked = [{7: Logprob(-0.25), 9: Logprob(-1.5)}, {3: Logprob(-2.0), 4: Logprob(-0.5)}]
    assert _margins(ranked, 2) == (1.25, 1.5)
    assert _margins((), 2) == ()  # none were asked for
    assert _margins(ranked, 3) == ()  # of a streamed answer only the last are known
    assert _margins([{7: Logprob(-0.25)}], 1) == ()


@pytest.mark.engine
def test_what_vllm_chose_is_told(headstart):
    settings = headstart.target.settings
    assert settings["dtype"] == "torch.float32"
    assert settings["block_size"] == 32
    assert settings["enforce_eager"] is True
    assert settings["async_scheduling"] is False
    assert settings["speculative_method"] == "custom_class"
    assert settings["scheduler"].endswith("HeadstartScheduler")
    assert settings["num_speculative_tokens"] == 16
    assert None not in (settings["compilation"], settings["graphs"], settings["device"])


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((1, 2), (1,), 1), ((), (4,), 0)],
)
def test_the_first_difference_is_where_tokens_part_or_one_ends(one, other, place):
    assert first_difference(one, other) == place
