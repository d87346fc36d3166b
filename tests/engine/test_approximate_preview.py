"""Exact answers with the preview of an approximate one: shown first, verified, never believed."""

import asyncio
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.live.camera import in_loop
from tests.models.oracle import random_asked
from tests.waiting import wait_until

from headstart import Answer, ApproximateFrames, ApproximateKv, Confirmed, Manner, Preview, Video
from headstart.engine.approximate_answers import MAX_UNCLAIMED, SOURCE, ApproximateAnswers
from headstart.engine.engine_memory import EngineMemory
from headstart.engine.question import Question
from headstart.engine.request_tags import RequestTags
from headstart.errors import LiveError, MannerError
from headstart.live.session import LiveSession
from headstart.live.windows import Windows
from headstart.media.approximate import PatchPlan
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid

MAX_TOKENS = 12
engine = pytest.mark.engine


@dataclass(frozen=True)
class OnePatch:
    """Of all that there is to see, a corner of the newest frame."""

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        kept = np.zeros((len(clip.video), grid.rows, grid.columns), dtype=bool)
        kept[-1, 0, 0] = True
        return PatchPlan.of(kept)


@pytest.fixture
def stream(approximate):
    """All that is shown of an exact answer with this preview, on a camera by itself."""

    def run(preview, asked, camera="front camera", max_tokens=MAX_TOKENS):
        camera = approximate.session(camera, camera, Manner(approximate_preview=preview))
        video = Video.from_frames(asked.frames, fps=8)

        async def gather():
            shown = camera.stream(video, asked.question, max_tokens=max_tokens)
            return [event async for event in shown]

        return asyncio.run(gather())

    return run


def of_preview(answer):
    """The verdicts on what was previewed."""
    return [verdict for verdict in answer.verdicts if verdict.draft.source == SOURCE]


@engine
def test_the_preview_comes_first_and_the_answer_is_the_exact_one(stream, oracle, rng):
    previewed, refused = 0, 0
    for number, asked in enumerate(random_asked(rng, 6)):
        *shown, answer = stream(OnePatch(), asked, camera=f"camera {number}")
        assert "".join(e.text for e in shown if isinstance(e, Confirmed)) == answer.text
        assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
        assert answer.approximate is None
        if isinstance(shown[0], Preview):  # a random model may also begin with what is no text
            assert shown[0].source == SOURCE
            assert of_preview(answer)
            previewed += 1
        refused += sum(v.num_accepted < len(v.draft.tokens) for v in of_preview(answer))
    assert previewed >= 3
    assert refused  # else the previews were not other words


@engine
def test_what_was_previewed_right_is_accepted_with_the_prompt(stream, oracle, rng):
    for number, asked in enumerate(random_asked(rng, 3)):
        # A plan that keeps every patch makes another request, whose words are the same.
        *_, answer = stream(ApproximateFrames(8), asked, camera=f"other camera {number}")
        assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
        first = of_preview(answer)[0]
        assert first.draft.start == 0
        assert first.num_accepted == len(first.draft.tokens) > 0


@engine
def test_nobody_learns_from_a_preview(approximate, stream, rng):
    """Answers of one word: the preview is complete before the exact request begins."""
    (asked,) = random_asked(rng, 1)
    *_, answer = stream(OnePatch(), asked, camera="learning camera", max_tokens=1)
    assert len(answer.token_ids) == 1
    memory = EngineMemory(approximate.target.front_end.engine)
    rows = approximate.loop.submit(memory.streams("learning camera", None, 10)).result(60)
    assert [row["answers"] for row in rows] == [1]


@engine
def test_who_does_not_stream_gets_no_preview(approximate, oracle, rng):
    (asked,) = random_asked(rng, 1)
    camera = approximate.session("silent", manner=Manner(approximate_preview=OnePatch()))
    answer = camera.ask(Video.from_frames(asked.frames, fps=8), asked.question, max_tokens=8)
    assert list(answer.token_ids) == oracle.answer(asked, 8)[0]
    assert not of_preview(answer)


@engine
def test_leaving_the_stream_ends_both_requests(approximate, rng):
    (asked,) = random_asked(rng, 1)
    camera = approximate.session("left", manner=Manner(approximate_preview=OnePatch()))
    video = Video.from_frames(asked.frames, fps=8)

    async def leave():
        shown = camera.stream(video, asked.question, max_tokens=200)
        await anext(shown)
        await shown.aclose()

    asyncio.run(leave())
    processor = approximate.target.front_end.engine.output_processor

    wait_until(lambda: in_loop(approximate, lambda: not processor.has_unfinished_requests()))
    assert in_loop(approximate, lambda: not approximate.target.front_end.engine._records)


@engine
def test_a_preview_that_fails_leaves_the_answer_alone(approximate, stream, oracle, rng):
    target, (asked,) = approximate.target, random_asked(rng, 1)
    render = target.render

    async def failing(words, clip, tenant, system="", plan=None):
        if plan is not None:
            raise RuntimeError("no room")
        return await render(words, clip, tenant, system, plan)

    target.render = failing
    try:
        *_, answer = stream(OnePatch(), asked, camera="camera of failures")
    finally:
        del target.render
    assert isinstance(answer, Answer)
    assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
    assert not of_preview(answer)


@engine
def test_a_live_session_refuses_it(approximate):
    camera = approximate.session("live", manner=Manner(approximate_preview=OnePatch()))
    with pytest.raises(LiveError, match="leave approximate_preview out"):
        LiveSession(camera, Windows(1))


def test_an_approximate_answer_has_no_preview():
    with pytest.raises(MannerError, match="needs no approximate preview"):
        Manner(approximate=OnePatch(), approximate_preview=OnePatch())


def test_an_exact_request_claims_what_its_own_preview_says_as_it_grows():
    answers, said = ApproximateAnswers(), [5]
    exact = RequestTags(tenant="north", name="ask-1")
    answers.begin("preview", RequestTags(tenant="north", preview_of="ask-1"), said)
    assert answers.is_preview("preview")
    answers.begin("stranger", RequestTags(tenant="south", name="ask-1"), [])
    answers.begin("exact", exact, [])
    said.append(6)
    answers.forget("preview")
    assert answers.draft("exact").tokens == (5, 6)
    for other in ("stranger", "preview", "unknown"):
        assert answers.draft(other) is None
    answers.forget("exact")
    assert answers.draft("exact") is None


def test_previews_whose_exact_request_never_comes_are_bounded():
    answers = ApproximateAnswers()
    for number in range(MAX_UNCLAIMED + 1):
        answers.begin(f"preview-{number}", RequestTags(preview_of=f"ask-{number}"), [number + 1])
    answers.begin("first", RequestTags(name="ask-0"), [])
    answers.begin("second", RequestTags(name="ask-1"), [])
    assert answers.draft("first") is None
    assert answers.draft("second").tokens == (2,)


def test_the_tags_of_a_preview_survive_the_way_to_the_scheduler():
    manner = Manner(approximate_preview=ApproximateKv("kv-bridge"))
    asked = Question("What?", tenant="north", manner=manner, previews=True)
    assert not asked.guesses_kv
    preview = asked.approximate_preview()
    assert preview.manner == Manner(approximate=ApproximateKv("kv-bridge"))
    tags = replace(preview.tags("ask-2"), preview_of="ask-1")
    assert tags.guesses_kv
    assert not tags.preview  # nothing of it is shown but its words
    assert RequestTags.parse(tags.extra_args()) == tags
