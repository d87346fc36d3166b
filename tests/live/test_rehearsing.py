"""When live questions are rehearsed; and that a rehearsal changes no word of the answer."""

from itertools import pairwise

import pytest

pytest.importorskip("vllm")
from headstart.engine.rehearsed_words import Rehearsal
from headstart.live.rehearsing import MAX_SKIPPED, NUM_STILL, DueFrames, RehearsalPace
from headstart.live.windows import Windows
from rig.camera import MAX_TOKENS, NUM_SLOTS, QUESTION
from rig.waiting import wait_until
from tests.models.oracle import random_clip

SAID = tuple(range(20))
FEED_S = 0.08
SLOT_US = 600_000_000
SLOW = Windows(NUM_SLOTS * SLOT_US / 1e6)
"""Nothing is cut off for a frame that is due, and one rehearsal a window is begun: the last."""


def taking(seconds, *, windows=10, moves=True):
    """What is decided where whole rehearsals have taken so long for some windows."""
    pace = RehearsalPace()
    for number in range(windows):
        said = (number, *SAID) if moves else SAID
        pace.rehearsed(Rehearsal(said, True, seconds), is_first=True)
        pace.answered(said, said)
    return pace


def is_time(pace, left_s, *, frame_s=0.5, is_first=True):
    """With so long to go until the last frame, one frame every half second."""
    due = DueFrames(min(frame_s, left_s), left_s)
    return pace.is_time(0.0, due, feed_s=FEED_S, is_first=is_first)


@pytest.mark.parametrize(("seconds", "left_s"), [(0.1, 1.0), (0.5, 1.5), (1.0, 2.5)])
def test_the_first_of_a_window_begins_as_late_as_it_can_end(seconds, left_s):
    pace = taking(seconds)
    times_s = [3.5 - 0.5 * number for number in range(7)]
    begun = [time_s for time_s in times_s if is_time(pace, time_s)]
    assert begun[0] <= left_s
    assert begun == times_s[times_s.index(begun[0]) :]
    assert begun[-1] == 0.5  # at the last opportunity, however long it takes


def test_each_further_frame_brings_another():
    pace = taking(0.1)
    assert not is_time(pace, 3.0)
    assert is_time(pace, 3.0, is_first=False)


def test_where_the_next_frame_would_cut_it_off_nothing_is_begun():
    pace = taking(0.1)
    pace.rehearsed(Rehearsal(SAID, True, 0.2), is_first=False)
    assert is_time(pace, 0.125, frame_s=0.125)
    assert not is_time(pace, 0.09, frame_s=0.09)


def test_a_still_scene_is_rehearsed_once_a_window():
    pace = taking(0.1, windows=1 + NUM_STILL, moves=False)
    assert not is_time(pace, 1.0)
    assert is_time(pace, 0.5)
    assert not is_time(pace, 0.4, frame_s=0.4, is_first=False)
    pace.answered((7, *SAID), (7, *SAID))  # it moves again
    assert is_time(pace, 1.0, is_first=False)


def test_where_memory_knew_as_much_one_a_window_is_enough():
    pace = RehearsalPace()
    for number in range(40):
        answer = (*SAID, number)
        pace.answered(answer, SAID)  # as far as the answer before agrees with this one
    assert not is_time(pace, 1.0, is_first=False)
    assert is_time(pace, 0.5)


def test_an_engine_without_time_is_asked_less_and_less():
    pace = taking(0.1)
    asked = []
    for number in range(100):
        if is_time(pace, 0.5):
            asked.append(number)
            pace.rehearsed(Rehearsal((), False, 0.0), is_first=True)
    gaps = [after - before for before, after in pairwise(asked)]
    assert gaps[:5] == [2, 3, 5, 9, 17]
    assert max(gaps) == MAX_SKIPPED + 1
    while not is_time(pace, 0.5):
        pass
    pace.rehearsed(Rehearsal(SAID, True, 0.1), is_first=True)
    assert is_time(pace, 0.5)


def rehearsed(standing):
    return standing._rehearsals._newest


def begin_window(camera, frames, standing):
    """All but the last frame of a window; returns when it is rehearsed."""
    for number, frame in enumerate(frames[:-1]):
        camera.feed(frame, number * SLOT_US)
    wait_until(lambda: rehearsed(standing), "a rehearsal")


@pytest.mark.engine
def test_a_rehearsal_drafts_the_answer_and_changes_no_word(headstart, open_camera, expected, rng):
    camera, frames = open_camera(SLOW), random_clip(rng, NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    begin_window(camera, frames, standing)
    said = rehearsed(standing)
    assert said == expected(frames[:-1])
    camera.feed(frames[-1], (NUM_SLOTS - 1) * SLOT_US)
    answer = next(standing).answer
    assert answer.token_ids == expected(frames)
    opening = answer.verdicts[0].draft
    assert (opening.source, opening.start) == ("rehearsal", 0)
    assert opening.tokens == said[: len(opening.tokens)]


@pytest.mark.engine
def test_nothing_is_rehearsed_where_it_is_switched_off(headstart, open_camera, expected, rng):
    camera, frames = open_camera(SLOW, rehearse=False), random_clip(rng, NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    for number, frame in enumerate(frames):
        camera.feed(frame, number * SLOT_US)
        wait_until(lambda: headstart.target.feeder.is_idle, "a feed")
    answer = next(standing).answer
    assert answer.token_ids == expected(frames)
    assert not rehearsed(standing)
    assert "rehearsal" not in {verdict.draft.source for verdict in answer.verdicts}


@pytest.mark.engine
def test_two_questions_of_a_window_are_rehearsed_apart(headstart, open_camera, expected, rng):
    camera, frames = open_camera(SLOW), random_clip(rng, NUM_SLOTS)
    questions = (QUESTION, "What else?")
    standing = [camera.live.standing(one, max_tokens=MAX_TOKENS) for one in questions]
    begin_window(camera, frames, standing[0])
    wait_until(lambda: rehearsed(standing[1]), "the other's rehearsal")
    camera.feed(frames[-1], (NUM_SLOTS - 1) * SLOT_US)
    for words, one in zip(questions, standing, strict=True):
        answer = next(one).answer
        assert answer.token_ids == expected(frames, words)
        assert answer.verdicts[0].draft.source == "rehearsal"


@pytest.mark.engine
def test_a_window_that_is_lost_ends_its_rehearsal(headstart, open_camera, expected, rng):
    camera, frames = open_camera(SLOW), random_clip(rng, 2 * NUM_SLOTS)
    standing = camera.live.standing(QUESTION, max_tokens=MAX_TOKENS)
    begin_window(camera, frames[:NUM_SLOTS], standing)
    camera.live.lose((NUM_SLOTS - 1) * SLOT_US)
    for number in range(NUM_SLOTS, 2 * NUM_SLOTS):
        camera.feed(frames[number], number * SLOT_US)
        wait_until(lambda: headstart.target.feeder.is_idle, "a feed")
    answer = next(standing)
    assert answer.start_us == NUM_SLOTS * SLOT_US
    assert answer.answer.token_ids == expected(frames[NUM_SLOTS:])
