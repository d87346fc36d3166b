"""Standing questions on a real engine: slow readers, busy targets, callers that leave."""

import asyncio
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from headstart import Confirmed
from headstart.engine.loop_thread import LoopThread
from headstart.errors import LiveError, SchemaError
from headstart.live import session as session_module
from headstart.live import standing as standing_module
from headstart.live.standing import StandingQuestion
from headstart.live.window_question import WindowQuestion
from headstart.live.windows import FrameStatus, Windows
from rig.camera import (
    MAX_TOKENS,
    NUM_SLOTS,
    PATIENCE_S,
    QUESTION,
    SLOT_US,
    feed_slowly,
    forget_prefixes,
    in_loop,
)
from rig.waiting import wait_until
from tests.models.oracle import random_clip

pytestmark = pytest.mark.engine


def test_a_slow_reader_loses_no_answer_and_windows_count_as_unread(
    open_camera, expected, rng, monkeypatch
):
    monkeypatch.setattr(standing_module, "MAX_UNREAD", 2)
    camera = open_camera()
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    frames = random_clip(rng, 5 * NUM_SLOTS)
    for number in range(4):
        camera.feed_all(frames[NUM_SLOTS * number :][:NUM_SLOTS], NUM_SLOTS * number)
        wait_until(lambda number=number: camera.live.counts.windows == number + 1)
        wait_until(lambda number=number: standing._answers.qsize() == min(2, number + 1))
    assert camera.live.counts.unread == 2
    read = [next(standing)]
    camera.feed_all(frames[4 * NUM_SLOTS :], 4 * NUM_SLOTS)
    camera.live.end()
    read += standing
    assert [answer.start_us // SLOT_US for answer in read] == [0, 8, 32]
    for answer in read:
        assert answer.answer.token_ids == expected(camera.clip(answer))
    counts = camera.live.counts
    assert (counts.asked, counts.unread, counts.dropped, counts.windows) == (3, 2, 0, 5)


def test_windows_that_end_while_one_is_answered_are_dropped_but_the_newest(
    headstart, open_camera, expected, rng
):
    camera = open_camera()
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    frames = random_clip(rng, 4 * NUM_SLOTS)
    in_loop(headstart, lambda: camera.feed_all(frames))  # all have landed before an answer comes
    camera.live.end()
    answers = list(standing)
    assert [answer.start_us // SLOT_US for answer in answers] == [0, 24]
    for answer in answers:
        assert answer.answer.token_ids == expected(camera.clip(answer))
    counts = camera.live.counts
    assert (counts.windows, counts.asked, counts.dropped) == (4, 2, 2)


def test_answers_are_awaited_in_the_engines_loop_and_a_lost_frame_costs_its_window(
    headstart, open_camera, expected, rng
):
    camera = open_camera()
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    frames = random_clip(rng, 3 * NUM_SLOTS)

    async def read_all() -> list:
        return [answer async for answer in standing]

    reading = headstart.loop.submit(read_all())
    camera.feed_all(frames[:NUM_SLOTS])
    wait_until(lambda: camera.live.counts.asked == 1)
    camera.feed_all(frames[NUM_SLOTS : NUM_SLOTS + 3], NUM_SLOTS)
    assert camera.live.held_bytes >= 3 * frames[0].nbytes
    camera.live.lose((NUM_SLOTS + 3) * SLOT_US)
    camera.feed_all(frames[2 * NUM_SLOTS :], 2 * NUM_SLOTS)
    camera.live.end()
    answers = reading.result(120)
    assert [answer.start_us // SLOT_US for answer in answers] == [0, 2 * NUM_SLOTS]
    for answer in answers:
        assert answer.answer.token_ids == expected(camera.clip(answer))
    counts = camera.live.counts
    assert (counts.windows, counts.asked, counts.lost, counts.missing) == (2, 2, 1, 0)


def assert_nothing_is_left(headstart):
    """No task of a session or a feed, and no block in use."""

    def names():
        return [
            task.get_coro().__qualname__
            for task in asyncio.all_tasks()
            if task is not asyncio.current_task()
        ]

    def is_live(name):
        return name.startswith(
            ("Standing", "WindowPrefiller", "LiveSession", "WindowQuestion", "Target")
        )

    wait_until(lambda: not any(map(is_live, in_loop(headstart, names))))
    wait_until(lambda: forget_prefixes(headstart))


@pytest.mark.parametrize("num_frames", [3, NUM_SLOTS, NUM_SLOTS + 3])
def test_closing_in_the_middle_leaves_nothing_and_the_next_session_works(
    headstart, open_camera, expected, rng, num_frames
):
    """In the middle of a feed, of an answer, of both."""
    camera = open_camera()
    standing = camera.live.standing(QUESTION, max_tokens=400)
    camera.feed_all(random_clip(rng, num_frames))
    if num_frames >= NUM_SLOTS:
        wait_until(lambda: camera.live.counts.asked)
    wait_until(lambda: in_loop(headstart, lambda: bool(headstart.target.front_end.engine._records)))
    camera.live.close()
    assert list(standing) == []
    assert_nothing_is_left(headstart)
    assert camera.live.held_bytes == 0
    again = open_camera()
    standing = again.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    again.feed_all(random_clip(rng, NUM_SLOTS))
    answer = next(standing)
    assert answer.answer.token_ids == expected(again.clip(answer))


def test_closing_before_the_question_has_begun_ends_its_reader(headstart, open_camera, rng):
    camera, frames = open_camera(), random_clip(rng, NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)

    def feed_and_close():
        camera.feed_all(frames)
        camera.live.close()

    in_loop(headstart, feed_and_close)
    reader = threading.Thread(target=lambda: list(standing), daemon=True)
    reader.start()
    reader.join(PATIENCE_S / 4)
    assert not reader.is_alive()
    assert camera.live.counts.asked == 1
    assert_nothing_is_left(headstart)


def test_a_closed_question_is_asked_no_more_and_the_others_go_on(open_camera, rng):
    camera, frames = open_camera(), random_clip(rng, 2 * NUM_SLOTS)
    closed = camera.live.standing("Who?", max_tokens=MAX_TOKENS)
    kept = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    camera.feed_all(frames[:NUM_SLOTS])
    assert next(closed).question == "Who?"
    assert next(kept).question == QUESTION
    closed.close()
    assert list(closed) == []
    camera.feed_all(frames[NUM_SLOTS:], NUM_SLOTS)
    assert next(kept).start_us == NUM_SLOTS * SLOT_US
    assert camera.live.counts.asked == 3


def test_after_the_end_nobody_waits(open_camera, rng):
    camera = open_camera()
    camera.live.end()
    with pytest.raises(LiveError, match="begin another one"):
        camera.live.ask(QUESTION)
    assert list(camera.live.standing(QUESTION)) == []
    closed = open_camera()
    closed.live.close()
    assert list(closed.live.standing(QUESTION)) == []
    assert closed.feed(random_clip(rng, 1)[0], 0) is FrameStatus.TAKEN  # and goes nowhere


def test_a_camera_that_stops_is_answered_about_by_the_clock(
    open_camera, expected, rng, monkeypatch
):
    monkeypatch.setattr(session_module, "PATIENCE_S", 0.1)
    camera, frames = open_camera(Windows(0.8)), random_clip(rng, 4)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    camera.feed(frames[0], 0)
    camera.feed(frames[1], 500_000)
    answer = next(standing)  # no frame ends this window
    assert answer.answer.token_ids == expected(camera.clip(answer, [0, 500_000]))
    assert answer.asked_s - answer.landed_s >= 0.3
    assert camera.feed(frames[2], 600_000) is FrameStatus.LATE
    assert camera.feed(frames[3], 900_000) is FrameStatus.TAKEN
    answer = next(standing)
    assert answer.start_us == 800_000
    assert answer.answer.token_ids == expected(camera.clip(answer, [900_000]))
    assert camera.live.counts.missing == 6 + 7


def test_what_the_target_refuses_is_raised_to_the_reader_and_the_session_goes_on(
    open_camera, expected, rng
):
    camera = open_camera()
    refused = camera.live.standing(QUESTION, schema={"type": "nonsense"})
    kept = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    camera.feed_all(random_clip(rng, NUM_SLOTS))
    with pytest.raises(SchemaError, match="nonsense"):
        next(refused)
    assert list(refused) == []
    answer = next(kept)
    assert answer.answer.token_ids == expected(camera.clip(answer))


def test_words_are_shown_as_they_come(open_camera, rng):
    camera, shown = open_camera(), []
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS, on_shown=shown.append)
    camera.feed_all(random_clip(rng, NUM_SLOTS))
    answer = next(standing)
    certain = [event.text for event in shown if isinstance(event, Confirmed)]
    assert len(certain) > 1
    assert "".join(certain) == answer.text


class Twice:
    """Wants the first and the third window."""

    urgency = 0.5

    def __init__(self):
        self.noted, self.asked_about = [], []

    def note(self, time_us, events):
        self.noted.append(time_us)

    def is_wanted(self, start_us, stop_us):
        return start_us // SLOT_US in (0, 2 * NUM_SLOTS)

    def asked(self, start_us, stop_us):
        self.asked_about.append(start_us // SLOT_US)


def test_windows_that_are_not_wanted_are_neither_fed_nor_asked(headstart, open_camera, rng):
    when, frames = Twice(), random_clip(rng, 3 * NUM_SLOTS)
    camera, before = open_camera(when=when), headstart.target.feeder.counts.frames
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    feed_slowly(headstart, camera, frames)
    camera.live.end()
    assert [answer.start_us // SLOT_US for answer in standing] == [0, 2 * NUM_SLOTS]
    assert when.asked_about == [0, 2 * NUM_SLOTS]
    assert all(first < second for first, second in pairwise(when.noted))
    assert len(when.noted) == len(frames)
    assert camera.live.counts.skipped == 1
    assert headstart.target.feeder.counts.frames - before == 2 * (NUM_SLOTS - 1)


def test_a_reader_does_not_wait_for_an_engine_that_was_closed():
    loop = LoopThread()
    standing = StandingQuestion(
        SimpleNamespace(loop=loop), WindowQuestion("Who is there?"), threading.RLock()
    )  # type: ignore[arg-type]
    heard = []
    reader = threading.Thread(target=lambda: heard.extend(standing))
    reader.start()
    loop.close()
    reader.join(30)
    assert not reader.is_alive()
    assert heard == []
