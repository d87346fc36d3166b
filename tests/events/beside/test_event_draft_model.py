"""A drafter in its own process beside the target: its words save passes, and change none."""

import asyncio
from itertools import takewhile

import numpy as np
import pytest

from headstart import (
    Answer,
    Clip,
    Confirmed,
    Headstart,
    Preview,
    Retracted,
    Sources,
    Video,
)
from headstart.answers.timeline import Stage
from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import send
from headstart.engine.model import Model, text_vocabulary
from headstart.errors import DraftingError, EngineStartError
from headstart.media.events import Events, SensorSize
from headstart_events.beside.event_model import EventDraftModel
from headstart_lab.tiny import TinyEventGpt
from headstart_lab.tokenizer import train_tokenizer
from rig.waiting import until, wait_until
from tests.events.beside.drafts import (
    PATIENCE_S,
    ask_target,
    drafter_of,
    drafting,
    hear_first_draft,
)
from tests.models.oracle import random_asked, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 40
LONG = 160
"""Long enough for a drafter to be heard before the end, even on a busy machine."""
ARGUMENTS = {"dtype": "float32", "enforce_eager": True, "block_size": 32}


@pytest.fixture(scope="module")
def guided(tiny_target):
    """The drafter is the target's own model: whatever it drafts in time is right."""
    drafter = EventDraftModel(tiny_target, ARGUMENTS)
    with Headstart(
        tiny_target,
        draft_model=drafter,
        # Whether drafts pay on this machine now is not what is tested.
        sources=Sources(abstain=False),
        max_draft_tokens=16,
        vllm=ARGUMENTS,
    ) as running:
        frames = random_clip(np.random.default_rng(0))
        hear_first_draft(running, Clip(video=Video.from_frames(frames, fps=8)))
        yield running


def test_what_was_drafted_before_the_prompt_is_computed_is_verified_with_it(guided, oracle, rng):
    for asked in random_asked(rng, 3):
        expected, _ = oracle.answer(asked, MAX_TOKENS)
        clip = Clip(video=Video.from_frames(asked.frames, fps=8))
        with drafting(guided, clip, asked.question, MAX_TOKENS) as (name, ear):
            draft = ear.wait_for(len(expected))
            assert list(draft.tokens) == expected
            said = ask_target(guided, clip, asked.question, name, MAX_TOKENS)
        assert list(said.token_ids) == expected
        text = text_vocabulary(oracle.model.config).text_prefix(expected)
        # Untrained, it also says placeholders, which are never drafted.
        assert said.accepted_histogram[0] == min(16, len(text), MAX_TOKENS - 1)
        assert said.verdicts[0].draft.source == "eventgpt"
        assert sum(said.accepted_histogram) + said.num_passes >= len(said.token_ids)


def test_asked_as_usual_the_answer_is_the_targets_and_both_are_on_one_clock(guided, oracle, rng):
    timelines = []
    for asked in random_asked(rng, 4):
        expected, _ = oracle.answer(asked, LONG)
        video = Video.from_frames(asked.frames, fps=8)
        answer = guided.ask(video, asked.question, max_tokens=LONG)
        assert list(answer.token_ids) == expected
        if answer.drafter_timeline is not None:
            timelines.append((answer.timeline, answer.drafter_timeline))
    assert timelines, "the drafter was not heard before the end of any answer"
    for target, drafter in timelines:
        spans = drafter.spans
        assert [span.stage for span in spans] == [s for s in Stage if s is not Stage.LOAD]
        assert target.start_s - 60 < spans[0].start_s < target.end_s


def test_a_drafter_that_speaks_prose_is_not_set_to_work_for_json(guided, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(asked.frames, fps=8)
    # Long enough for the drafter to be heard, had it been asked.
    schema = {"type": "string", "minLength": LONG}
    answer = guided.ask(video, asked.question, max_tokens=LONG, schema=schema)
    assert answer.text.startswith('"')
    assert answer.drafter_timeline is None
    assert all(verdict.draft.source != "eventgpt" for verdict in answer.verdicts)


def test_a_stream_shows_drafts_and_ends_with_the_answer(guided, oracle, rng):
    session = guided.session("shown")
    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    video = Video.from_frames(asked.frames, fps=8)

    async def read():
        certain, changing, num_previews = "", "", 0
        async for event in session.stream(video, asked.question, max_tokens=MAX_TOKENS):
            match event:
                case Preview(text=text):
                    changing += text
                    num_previews += 1
                case Retracted():
                    changing = ""
                case Confirmed(text=text):
                    certain += text
                    changing = changing[len(text) :] if changing.startswith(text) else ""
                case Answer():
                    assert (certain, changing) == (event.text, "")
                    assert list(event.token_ids) == expected
        return num_previews

    asyncio.run(read())
    # The second time the whole answer is remembered before the target has begun.
    assert asyncio.run(read()) > 0


def test_leaving_a_stream_leaves_the_engine_free(guided, oracle, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(asked.frames, fps=8)

    async def leave():
        async for _ in guided.stream(video, asked.question, max_tokens=300):
            break
        task = asyncio.create_task(guided.ask_async(video, asked.question, max_tokens=300))
        await until(lambda: guided.target.front_end.engine._records, "the request")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    answer = guided.ask(video, asked.question, max_tokens=MAX_TOKENS)
    assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]


def test_many_at_once_get_each_their_own(guided, oracle, rng):
    asked = random_asked(rng, 6)
    videos = [Video.from_frames(one.frames, fps=8) for one in asked]

    async def ask_all():
        return await asyncio.gather(
            *(
                guided.session(f"camera {i}").ask_async(video, one.question, max_tokens=MAX_TOKENS)
                for i, (video, one) in enumerate(zip(videos, asked, strict=True))
            )
        )

    answers = asyncio.run(ask_all())
    assert [list(a.token_ids) for a in answers] == [
        oracle.answer(one, MAX_TOKENS)[0] for one in asked
    ]


def test_a_clip_the_drafter_cannot_look_at_is_answered_without_it(guided):
    sensor = SensorSize(8, 8)
    empty = Events.empty(sensor)
    clip = Clip(Video.from_frames(np.zeros((8, 56, 56, 3), np.uint8), fps=8), empty)
    assert guided.ask(clip, "Who?", max_tokens=3).token_ids


def test_a_drafter_is_told_of_words_that_it_has_foreseen(guided, oracle, rng):
    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    clip = Clip(video=Video.from_frames(asked.frames, fps=8))
    # Untrained, it goes on with ids that no tokenizer has, and of which no drafter is told.
    num_text_ids = oracle.model.config.image_token_index
    text = tuple(takewhile(lambda token: token < num_text_ids, expected))
    with drafting(guided, clip, asked.question, MAX_TOKENS) as (name, ear):
        ear.wait_for(len(expected))
        for count in sorted({1, len(text) // 2, len(text) - 1}):
            tell(guided, name, expected[:count])
            draft = ear.wait_until(lambda draft, count=count: draft.start == count)
            assert draft.tokens == tuple(expected[count:])


def tell(headstart, name, said):
    """As the scheduler tells the drafter what the target has said."""
    outlet = drafter_of(headstart)._channel.asks_out()
    wait_until(lambda: send(outlet, messages.Said(name, tuple(said))))
    outlet.close(linger=round(PATIENCE_S * 1e3))


def test_a_drafter_of_another_tokenizer_is_refused_before_anything_starts(tiny_target, tmp_path):
    TinyEventGpt().save(tmp_path)
    drafter, target = EventDraftModel(tmp_path), Model.checked(tiny_target)
    drafter.check(target, Sources())
    words = ["Quite other words are here to be learnt."] * 3
    train_tokenizer(words, max_pieces=300).save_pretrained(tmp_path)
    with pytest.raises(DraftingError, match="leave the drafter out: memory"):
        Headstart(tiny_target, draft_model=drafter, vllm=ARGUMENTS)


def test_a_drafter_that_is_not_there_is_refused_before_anything_starts(tiny_target, tmp_path):
    with pytest.raises(EngineStartError, match="there is no directory"):
        Headstart(tiny_target, draft_model=tmp_path / "none", vllm=ARGUMENTS)
    with pytest.raises(DraftingError, match="0 and no draft model"):
        Headstart(tiny_target, draft_model=tiny_target, max_draft_tokens=0)
