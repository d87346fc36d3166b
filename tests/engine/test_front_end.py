"""One question under way: which drafts are shown, and what the request says to the drafters."""

import asyncio
import contextlib
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("vllm")
from tokenizers.decoders import DecodeStream

from headstart.answers.preview import Confirmed, Preview, Retracted
from headstart.engine.drafts.messages import Drafted
from headstart.engine.front_end import FrontEnd
from headstart.engine.question import Question, RequestOptions
from headstart.engine.request_record import RequestRecord
from headstart.engine.request_tags import RequestTags
from headstart.engine.session import Session
from headstart.engine.target import Target
from headstart.errors import LiveError
from headstart.media.clip import Clip
from headstart.media.events import Events, SensorSize
from headstart.media.video import Video
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import StreamKey
from tests.models.oracle import random_asked

pytestmark = pytest.mark.engine


@pytest.fixture
def ask(headstart):
    """Runs ``check(asking, said)`` while a question is under way on the shared engine."""
    front_end = headstart.target.front_end

    def run(check, **options):
        async def under_way():
            now_s = time.monotonic()
            record = RequestRecord("id", now_s, now_s)
            async with front_end.open_request(Question("What?", **options), record) as asking:
                return await check(asking, record.token_ids)

        return headstart.loop.submit(under_way()).result(60)

    return run


def drafted(tokens, start=0, source="memory", made_at_s=0.0):
    return Drafted("id", Draft(tuple(tokens), source, made_at_s, start))


def test_a_draft_is_shown_where_the_answer_has_come_to_it(ask, headstart):
    text = headstart.target.front_end.engine.text

    async def check(asking, said):
        asking.hear(drafted([40, 41], start=2))
        assert asking.previews() == []  # nothing says how the answer gets there
        asking.hear(drafted([30, 31, 40, 41]))
        assert asking.previews() == [Preview(text([30, 31, 40, 41]), "memory")]
        assert asking.previews() == []  # nothing new
        said += [30, 31]
        assert asking.screen.confirm(text([30, 31])) == [Confirmed(text([30, 31]))]
        said += [99]
        shown = asking.screen.confirm(text([30, 31, 99])[len(text([30, 31])) :])
        assert isinstance(shown[0], Retracted)
        assert asking.previews() == []  # the draft says otherwise than the target
        asking.hear(drafted([50], start=9))
        assert asking.previews() == []

    ask(check, previews=True)


def test_a_draft_reads_as_vllm_reads_the_same_answer_after_its_prompt(headstart):
    engine = headstart.target.front_end.engine
    tokenizer = engine.renderer.tokenizer
    prompt, words = (
        tokenizer.encode(text, add_special_tokens=False)
        for text in ("USER: What? ASSISTANT:", "There is a crossing on the left side.")
    )
    stream = DecodeStream(ids=prompt, skip_special_tokens=True)
    read = "".join(stream.step(tokenizer._tokenizer, token) or "" for token in words)
    assert read.startswith(" There")
    assert engine.text(words) == read


@pytest.mark.parametrize("hostile", [[-1], [2**31], [10**9, 30]])
def test_ids_that_are_not_text_are_not_shown(ask, hostile):
    async def check(asking, said):
        asking.hear(drafted(hostile))
        return asking.previews()

    assert ask(check, previews=True) == []


def test_news_of_drafts_reach_only_a_question_that_wants_previews(ask):
    async def check(asking, said):
        heard = []
        asking.on_news = lambda: heard.append(1)
        asking.hear(drafted([30]))
        await asyncio.sleep(0)
        return len(heard)

    assert ask(check, previews=True) == 1
    assert ask(check, previews=False) == 0


def test_a_question_that_is_not_drafted_says_nothing_to_the_drafters(ask):
    async def check(asking, said):
        return asking.tags

    stream = StreamKey("north", "camera")
    assert ask(check, is_drafted=False, stream=stream) is None
    expected = RequestTags(stream, "north", "What?", 0.0, (1, 2), "id")
    tags = ask(check, stream=stream, tenant="north", prediction=(1, 2))
    assert tags == expected
    assert RequestTags.parse(tags.extra_args()) == expected


def events_in(rng, start, stop):
    """Somewhere between two columns."""
    columns, rows = rng.integers(start, stop, 2000), rng.integers(0, 60, 2000)
    times, signs = np.sort(rng.integers(0, 50_000, 2000)), rng.integers(0, 2, 2000)
    return Events.checked(columns, rows, times, signs, SensorSize(80, 60))


def test_the_scene_changes_when_a_question_is_asked_and_not_when_it_is_built(
    headstart, rng, monkeypatch
):
    engine, changes = headstart.target.front_end.engine, []
    generate = engine.generate

    def noted(prompt, params, *rest, **more):
        changes.append(RequestTags.parse(params.extra_args).change)
        return generate(prompt, params, *rest, **more)

    monkeypatch.setattr(engine, "generate", noted)
    session = headstart.session("scenes")
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(asked.frames, fps=8)
    left, right = (Clip(video, events_in(rng, *side)) for side in ((0, 40), (40, 80)))
    for clip in (left, right, right):
        for _ in range(3):
            session.question(clip, "What?", 2, None)
        session.ask(clip, "What?", max_tokens=2)
    assert changes[0] == changes[2] == 0
    assert changes[1] > 0.3


def test_who_logs_is_told_of_each_question_when_it_is_over(headstart, rng):
    asked_about, told = [], []

    class Listener:
        def asked(self, question):
            asked_about.append(question)

        def answered(self, question, record):
            told.append((question, record))

    front_end = FrontEnd(headstart.target.front_end.engine, None, listeners=[Listener()])
    target = Target(headstart.target.view, front_end)
    session = Session(target, headstart.loop, StreamKey("north", "camera"), RequestOptions())
    (asked,) = random_asked(rng, 1)
    clip = Clip(Video.from_frames(asked.frames, fps=8))
    answer = session.ask(clip, "What?", max_tokens=6)

    async def left_early():
        asked_again = session.question(clip, "What else?", 200, None)
        said = asyncio.Event()
        asking = asyncio.create_task(target.ask(asked_again, lambda shown: said.set()))
        await said.wait()
        assert (len(asked_about), len(told)) == (2, 1)
        asking.cancel()
        await asyncio.wait((asking,))

    headstart.loop.submit(left_early()).result(60)
    (first, whole), (second, half) = told
    assert (first.words, first.stream) == ("What?", StreamKey("north", "camera"))
    assert tuple(whole.token_ids) == answer.token_ids
    assert whole.finish_reason == answer.finish_reason
    assert (second.words, half.finish_reason) == ("What else?", None)


class Drafting(FrontEnd):
    """Has one draft come with each question, at first of words that the target will not say."""

    tokens = (30, 31)

    @contextlib.asynccontextmanager
    async def open_request(self, question, record):
        async with super().open_request(question, record) as asking:
            asking.hear(drafted(self.tokens))
            self.last = asking
            yield asking


@pytest.fixture
def drafting(headstart, rng):
    """A target whose questions are drafted for, and one about a clip that wants to see it."""
    front_end = Drafting(headstart.target.front_end.engine, None)
    session = Session(
        Target(headstart.target.view, front_end), headstart.loop, None, RequestOptions()
    )
    (asked,) = random_asked(rng, 1)
    question = session.question(Video.from_frames(asked.frames, fps=8), "What?", 8, None)
    return session.target, replace(question, previews=True)


def test_drafts_are_shown_before_the_words_and_taken_back(headstart, drafting):
    target, question = drafting
    shown = []
    answer = headstart.loop.submit(target.ask(question, shown.append)).result(60)
    assert [type(one) for one in shown[:3]] == [Preview, Retracted, Confirmed]
    assert "".join(one.text for one in shown if isinstance(one, Confirmed)) == answer.text
    shown.clear()
    target.front_end.tokens = answer.token_ids
    said = target.ask(replace(question, previews=False), shown.append)
    assert headstart.loop.submit(said).result(60).token_ids == answer.token_ids
    assert {type(one) for one in shown} == {Confirmed}


@pytest.mark.parametrize("kind", [Preview, Confirmed])
def test_what_whoever_shows_an_answer_raises_ends_the_question(headstart, drafting, kind):
    target, question = drafting

    def show(one):
        if isinstance(one, kind):
            raise LiveError("no words of this one")

    with pytest.raises(LiveError, match="no words of this one"):
        headstart.loop.submit(target.ask(replace(question, max_tokens=200), show)).result(60)
    assert target.front_end.last.record.finish_reason is None
    assert not target.front_end.engine._records


def test_drafts_that_come_after_the_last_word_are_not_shown(headstart, drafting, monkeypatch):
    target, question = drafting
    shown, engine = [], target.front_end.engine

    async def late(record):
        target.front_end.last.hear(drafted([*record.token_ids, 30, 31]))
        await asyncio.sleep(0)

    monkeypatch.setattr(engine, "time_vision", late)
    answer = headstart.loop.submit(target.ask(question, shown.append)).result(60)
    assert isinstance(shown[-1], Confirmed)
    assert target.front_end.last.previews()  # it would have been
    assert answer.text
