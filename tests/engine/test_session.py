"""A stream that remembers: fewer passes, the same tokens, and nothing shared."""

import asyncio

import pytest

from headstart import Video
from rig.waiting import until
from tests.models.oracle import random_asked

pytestmark = pytest.mark.engine

MAX_TOKENS = 24


def test_what_was_said_before_is_drafted_and_changes_no_token(headstart, oracle, rng):
    session = headstart.session("front camera", "remembering")
    for asked in random_asked(rng, 4):
        expected, _ = oracle.answer(asked, MAX_TOKENS)
        video = Video.from_frames(asked.frames, fps=8)
        first = session.ask(video, asked.question, max_tokens=MAX_TOKENS)
        again = session.ask(video, asked.question, max_tokens=MAX_TOKENS)
        assert list(first.token_ids) == expected
        assert list(again.token_ids) == expected
        assert again.num_accepted_tokens > first.num_accepted_tokens


def test_drafts_of_another_scene_change_no_token(headstart, oracle, rng):
    session, drafted, accepted = headstart.session("side camera"), 0, 0
    for asked in random_asked(rng, 8):
        video = Video.from_frames(asked.frames, fps=8)
        answer = session.ask(video, "What is ahead?", max_tokens=MAX_TOKENS)
        expected, _ = oracle.answer(type(asked)(asked.frames, "What is ahead?"), MAX_TOKENS)
        assert list(answer.token_ids) == expected
        drafted += answer.num_drafted_tokens
        accepted += answer.num_accepted_tokens
    assert drafted > accepted


def test_a_tenants_streams_draft_for_each_other_and_for_no_other_tenants(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(255 - asked.frames, fps=8)

    def ask(stream, tenant):
        return headstart.session(stream, tenant).ask(video, "Who?", max_tokens=MAX_TOKENS)

    first = ask("camera", "a")
    assert ask("camera", "a").num_accepted_tokens > 0
    stranger = ask("camera", "b")
    assert all(verdict.draft.source != "memory" for verdict in stranger.verdicts)
    neighbour = ask("other camera", "a")
    drafted = neighbour.verdicts[0].draft
    assert drafted.source == "memory"
    assert drafted.tokens == first.token_ids[: len(drafted.tokens)]
    assert stranger.token_ids == neighbour.token_ids == first.token_ids


def test_tenants_share_no_cached_prefix(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(asked.frames // 2, fps=8)
    sessions = [headstart.session("camera", tenant) for tenant in ("c", "d")]
    assert [s.ask(video, "Who?", max_tokens=1).num_cached_tokens for s in sessions] == [0, 0]
    assert all(s.ask(video, "Who?", max_tokens=1).num_cached_tokens > 0 for s in sessions)


def test_asked_outside_a_session_nothing_is_drafted_or_remembered(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(asked.frames, fps=8)
    for _ in range(2):
        assert headstart.ask(video, "Who now?", max_tokens=8).num_drafted_tokens == 0


def test_a_stream_that_is_closed_has_left_the_engine(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video, engine = Video.from_frames(asked.frames, fps=8), headstart.target.front_end.engine

    async def leave():
        events = headstart.stream(video, "Who else?", max_tokens=300)
        await anext(events)
        assert engine._records
        await events.aclose()
        return dict(engine._records)

    assert asyncio.run(leave()) == {}


def test_an_answer_that_nobody_waits_for_has_left_the_engine(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video, engine = Video.from_frames(asked.frames, fps=8), headstart.target.front_end.engine

    async def leave():
        asking = headstart.ask_async(video, "Who else?", max_tokens=300)
        task = asyncio.create_task(asking)
        await until(lambda: engine._records, "the request")
        task.cancel()
        await asyncio.wait((task,))
        return dict(engine._records)

    assert asyncio.run(leave()) == {}
