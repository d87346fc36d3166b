"""The measurement of live cameras compares the same frames, and notices what differs."""

import numpy as np
import pytest

from headstart.live.windows import FrameStatus, GrowingWindows, Windows
from rig.film import Film
from rig.live_camera import NUM_SLOTS, QUESTION, jpegs
from rig.live_load import Answers, Round, over_http, over_http_at_once, over_sockets
from rig.live_rounds import Equality, Plan
from rig.server_memory import MIN_SAMPLES, ServerMemory

NUM_CAMERAS = 2


def films(num_windows: int) -> tuple[Film, ...]:
    return tuple(
        Film(tuple(tuple(jpegs(NUM_SLOTS, 100 * camera + n)) for n in range(num_windows)))
        for camera in range(NUM_CAMERAS)
    )


def test_a_window_takes_exactly_the_frames_that_are_shown():
    shown = Round(films(4), QUESTION, window_s=0.08, windows=range(1, 4))
    for camera in range(NUM_CAMERAS):
        growing, ended = GrowingWindows(Windows(shown.window_s), NUM_SLOTS), []
        for slot in shown.slots(camera, began_s=0.0):
            # The picture's bytes in place of its pixels: the grid does not look at them.
            frame = np.frombuffer(slot.picture[:1200], np.uint8).reshape(20, 20, 3)
            landing = growing.land(frame, slot.time_us, now_s=0.0)
            assert landing.placement is FrameStatus.TAKEN
            assert bool(landing.ended) == slot.is_last
            ended += [(slot.window, window) for window in landing.ended]
        assert [number for number, _ in ended] == list(shown.windows)
        for number, window in ended:
            pictures = shown.films[camera].windows[number]
            assert [frame.tobytes() for frame in window.frames] == [one[:1200] for one in pictures]
            assert round(window.start_us / 1e6 / shown.window_s) == number


def test_no_round_shows_a_window_of_another():
    plan = Plan(num_cameras=1, every_s=0.5, num_rounds=3, num_windows=2)
    drawn = plan.films(plan.num_rounds)
    shown = [plan.warmup(drawn), *(plan.round(drawn, number) for number in range(3))]
    numbers = [number for each in shown for number in each.windows]
    assert numbers == list(range(len(drawn[0].windows)))
    pictures = [picture for window in drawn[0].windows for picture in window]
    assert len(set(pictures)) == len(pictures), "no frame comes twice"


def test_an_answer_that_differs_is_a_fault():
    bare = {(0, 1): "a bus", (0, 2): "a car", (1, 1): "a tram"}
    equal = Equality.of({(0, 1): "a bus", (0, 2): "a car"}, bare)
    assert (equal.figures(), equal.faults) == ({"compared": 2, "equal": 2}, ())
    different = Equality.of({(0, 1): "a bus", (0, 2): "a cat"}, bare)
    assert different.figures() == {"compared": 2, "equal": 1}
    assert "a cat" in different.faults[0]
    assert Equality.of({}, bare).faults, "nothing compared is nothing shown"


def test_memory_that_grows_is_a_fault_once_there_are_enough_samples():
    flat = [900.0] * 8 + [1000.0] * (MIN_SAMPLES - 8)  # warming up
    grows = [1000.0 + 10 * number for number in range(MIN_SAMPLES)]
    assert list(ServerMemory(None, flat).faults()) == []
    assert list(ServerMemory(None, grows).faults())
    assert list(ServerMemory(None, grows[:6]).faults()) == []


@pytest.mark.engine
def test_live_answers_over_sockets_are_those_of_vllms_own_server(pair):
    plain, ours = pair
    shown = Round(films(2), QUESTION, window_s=2.0, windows=range(2))
    live, bare = over_sockets(ours, "", shown), over_http(plain, shown)
    assert live.faults == bare.faults == []
    names = {(camera, window) for camera in range(NUM_CAMERAS) for window in range(2)}
    assert set(bare.texts) == set(bare.waits_s) == names
    # A slow machine may drop windows, whose fate is counted then.
    assert live.counts["asked"] + live.counts["dropped"] == len(names)
    equality = Equality.of(live.texts, bare.texts)
    assert equality.faults == ()
    assert len(equality.compared) == live.counts["asked"] >= NUM_CAMERAS
    assert all(wait_s > 0 for wait_s in (*live.waits_s.values(), *bare.waits_s.values()))
    assert over_http_at_once(plain, shown.films, QUESTION, sorted(names)) == bare.texts


@pytest.mark.engine
def test_a_refused_camera_is_a_fault(pair):
    plain, _ = pair
    shown = Round(films(1)[:1], QUESTION, window_s=0.1, windows=range(1))
    answers = over_sockets(plain, "", shown)  # vLLM's own server has no live socket
    assert answers.faults
    assert answers.texts == Answers().texts
