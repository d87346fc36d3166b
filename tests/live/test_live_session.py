"""Live questions on a real engine: frames are computed as they land, and no token changes."""

import json
import re
import threading

import numpy as np
import pytest

from headstart import Video
from headstart.errors import LiveError
from headstart.live.session import LiveSession
from headstart.live.windows import FrameStatus, Windows
from headstart.media.events import Events, SensorSize
from rig.camera import (
    BLOCK,
    FRAME_TOKENS,
    MAX_TOKENS,
    NUM_SLOTS,
    PATIENCE_S,
    QUESTION,
    SLOT_US,
    WINDOW_S,
    feed_slowly,
    forget_prefixes,
)
from rig.waiting import wait_until
from tests.engine.test_schema import SCHEMA
from tests.models.oracle import random_clip

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("every", [None, WINDOW_S / 2])
def test_standing_answers_are_those_about_the_whole_window(
    headstart, open_camera, expected, rng, every
):
    camera = open_camera(Windows(WINDOW_S, every))
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    feed_slowly(headstart, camera, random_clip(rng, 3 * NUM_SLOTS))
    camera.live.end()
    answers = list(standing)
    ends = [answer.stop_us // SLOT_US for answer in answers]
    assert ends == ([8, 16, 24] if every is None else [8, 12, 16, 20, 24, 28])
    for answer in answers:
        assert answer.num_frames == (4 if answer.stop_us > 24 * SLOT_US else NUM_SLOTS)
        assert answer.answer.token_ids == expected(camera.clip(answer))
        assert 0 < answer.first_token_s <= answer.wait_s
    # All frames but the last, which came with the question.
    fed_tokens = (NUM_SLOTS - 1) * FRAME_TOKENS
    assert all(a.answer.num_cached_tokens >= fed_tokens // BLOCK * BLOCK for a in answers[:3])
    assert sum(answer.answer.num_drafted_tokens for answer in answers) > 0
    counts = camera.live.counts
    assert counts.windows == counts.asked == len(answers)
    assert (counts.skipped, counts.dropped, counts.unread) == (0, 0, 0)
    assert counts.missing == (0 if every is None else 4)


def test_what_is_cached_grows_with_what_was_fed(headstart, open_camera, expected, rng):
    cached = []
    for num_frames in (2, 4, 6, 8):
        camera = open_camera()
        feed_slowly(headstart, camera, random_clip(rng, num_frames))
        answer = camera.live.ask(QUESTION, max_tokens=MAX_TOKENS)
        assert answer.num_frames == num_frames
        assert answer.answer.token_ids == expected(camera.clip(answer))
        cached.append(answer.answer.num_cached_tokens)
    assert cached == [BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK]


def test_a_question_may_come_before_during_and_after_the_window(open_camera, expected, rng):
    camera, frames = open_camera(), random_clip(rng, NUM_SLOTS)
    answers = []

    def ask():
        answers.append(camera.live.ask(QUESTION, max_tokens=MAX_TOKENS))

    early = threading.Thread(target=ask)
    early.start()
    wait_until(lambda: camera.live._first_frame._waiters, "the early question")
    assert not answers
    camera.feed(frames[0], 0)
    early.join(PATIENCE_S)
    camera.feed_all(frames[1:4], 1)
    ask()
    camera.feed_all(frames[4:], 4)
    ask()
    camera.live.end()
    ask()
    assert [answer.num_frames for answer in answers] == [1, 4, 8, 8]
    for answer in answers:
        assert answer.answer.token_ids == expected(camera.clip(answer))


def test_a_question_sees_at_least_all_but_a_step_of_the_window(open_camera, rng):
    camera = open_camera(Windows(WINDOW_S, WINDOW_S / 2))
    for number, frame in enumerate(random_clip(rng, 2 * NUM_SLOTS)):
        camera.feed(frame, number * SLOT_US)
        answer = camera.live.ask(QUESTION, max_tokens=1)
        seen_us = number * SLOT_US - answer.start_us
        assert min(number, NUM_SLOTS // 2) * SLOT_US <= seen_us < NUM_SLOTS * SLOT_US
        assert answer.num_frames == seen_us // SLOT_US + 1


def test_frames_late_doubled_missing_and_of_another_size(open_camera, expected, rng):
    camera, frames = open_camera(), random_clip(rng, NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    other = np.zeros((40, 50, 3), np.uint8)
    arriving = [
        (frames[0], 0, FrameStatus.TAKEN),
        (frames[1], 300_000, FrameStatus.SPARE),
        (frames[2], 2_100_000, FrameStatus.TAKEN),
        (frames[3], 1_200_000, FrameStatus.LATE),  # its slot was empty, and stays so
        (frames[4], 2_100_000, FrameStatus.DOUBLED),
        (other, 3_000_000, FrameStatus.MISFIT),
        (frames[5], 3_500_000, FrameStatus.TAKEN),
        (frames[6], 6_999_999, FrameStatus.TAKEN),
        (frames[7], 8_000_000, FrameStatus.TAKEN),
    ]
    for frame, time_us, placement in arriving:
        assert camera.feed(frame, time_us) is placement
    camera.live.end()
    first, second = standing
    taken = [0, 2_100_000, 3_500_000, 6_999_999]
    assert first.answer.token_ids == expected(camera.clip(first, taken))
    assert second.answer.token_ids == expected(camera.clip(second, [8_000_000]))
    counts = camera.live.counts
    assert counts.missing == 4 + 7
    assert counts.frames == {
        **{placement: 1 for _, _, placement in arriving},
        FrameStatus.TAKEN: 5,
    }


def test_what_vllm_has_evicted_is_computed_again(headstart, open_camera, expected, rng):
    camera, frames = open_camera(rehearse=False), random_clip(rng, NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    feed_slowly(headstart, camera, frames[:-1])
    wait_until(lambda: forget_prefixes(headstart))
    camera.feed_all(frames[-1:], NUM_SLOTS - 1)
    answer = next(standing)
    assert answer.answer.token_ids == expected(camera.clip(answer))
    assert answer.answer.num_cached_tokens == 0


def test_answers_that_follow_a_schema_are_the_same(headstart, open_camera, rng):
    camera = open_camera()
    standing = camera.live.standing(QUESTION, max_tokens=96, schema=SCHEMA)
    feed_slowly(headstart, camera, 255 - random_clip(rng, 3 * NUM_SLOTS) // 2)  # seen nowhere else
    camera.live.end()
    answers = list(standing)
    assert len(answers) == 3
    for answer in answers:
        # Outside a session nobody drafts, and without its tenant nothing is cached.
        video = Video.from_frames(camera.clip(answer), fps=1)
        alone = headstart.ask(video, QUESTION, max_tokens=96, schema=SCHEMA)
        assert alone.num_cached_tokens < BLOCK
        assert answer.answer.token_ids == alone.token_ids
        assert re.match(SCHEMA["pattern"], json.loads(answer.text))
        assert answer.answer.num_cached_tokens > 0
    assert sum(answer.answer.num_drafted_tokens for answer in answers) > 0
    live = camera.live.ask(QUESTION, max_tokens=96, schema=SCHEMA)
    assert live.answer.token_ids == answers[-1].answer.token_ids


def test_events_beside_the_frames_change_no_token(headstart, open_camera, expected, rng):
    camera, sensor = open_camera(), SensorSize(96, 72)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    for number, frame in enumerate(random_clip(rng, 2 * NUM_SLOTS)):
        xs, ys = rng.integers(0, 96, 500), rng.integers(0, 72, 500)
        times_us = number * SLOT_US + np.sort(rng.integers(-SLOT_US, 0, 500))
        events = Events.checked(xs, ys, times_us + SLOT_US, rng.integers(0, 2, 500), sensor)
        camera.feed(frame, (number + 1) * SLOT_US, events)
    camera.live.end()
    for answer in standing:
        assert answer.answer.token_ids == expected(camera.clip(answer))


def test_without_prefix_caching_nothing_is_fed_and_the_answer_is_the_same(
    headstart, open_camera, expected, rng, monkeypatch
):
    config = headstart.target.front_end.engine.vllm_config.cache_config
    monkeypatch.setattr(config, "enable_prefix_caching", False)
    camera, feeds = open_camera(), headstart.target.feeder.counts.feeds
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    feed_slowly(headstart, camera, random_clip(rng, NUM_SLOTS))
    answer = next(standing)
    assert answer.answer.token_ids == expected(camera.clip(answer))
    assert headstart.target.feeder.counts.feeds == feeds


def test_cameras_at_once_get_each_their_own_answers(open_camera, expected, rng):
    cameras = [open_camera(stream=f"camera {number}") for number in range(3)]
    answers = {number: [] for number in range(3)}

    def watch(number, frames):
        camera = cameras[number]
        standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
        for window in range(2):
            start = window * NUM_SLOTS
            camera.feed_all(frames[start : start + NUM_SLOTS], start)
            answers[number].append(next(standing))

    threads = [
        threading.Thread(target=watch, args=(number, random_clip(rng, 2 * NUM_SLOTS)))
        for number in answers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for number, given in answers.items():
        assert [answer.stream for answer in given] == [f"camera {number}"] * 2
        for answer in given:
            assert answer.answer.token_ids == expected(cameras[number].clip(answer))


def test_live_questions_need_a_camera_of_frames(headstart):
    with pytest.raises(LiveError, match="name the camera"):
        LiveSession(headstart, Windows(1))
