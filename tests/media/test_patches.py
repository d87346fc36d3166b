"""How much is new in each patch, by events of a camera and by simulated ones."""

import numpy as np
import pytest

from headstart.media.events import Events, SensorSize
from headstart.media.patches import PatchGrid, novelty
from headstart.media.simulation import SensorModel, count_events, simulate
from headstart.media.video import Video

GRID = PatchGrid(4, 4)


def grey(num_frames: int, height: int = 64, width: int = 64) -> np.ndarray:
    return np.full((num_frames, height, width, 3), 100, dtype=np.uint8)


def test_counted_events_are_those_of_the_ideal_sensor(rng):
    frames = rng.integers(0, 256, (5, 12, 16, 3), dtype=np.uint8)
    timed = zip(np.arange(5) * 100_000, frames, strict=True)
    for piece, counts in zip(
        simulate(timed, SensorModel.ideal()), count_events(frames), strict=True
    ):
        expected = np.zeros((12, 16))
        np.add.at(expected, (piece.y, piece.x), 1)
        np.testing.assert_array_equal(counts, expected)


def test_only_the_patch_that_changes_is_new_and_only_in_its_frame():
    frames = grey(3)
    frames[2, 16:32, 48:64] = 200
    new = novelty(Video.from_frames(frames, fps=8), None, GRID)
    assert np.argwhere(new).tolist() == [[2, 1, 3]]


def test_a_square_grid_sees_the_middle_of_a_wide_frame():
    frames = grey(2, 64, 128)
    frames[1, :, :32] = 200  # left of the square
    frames[1, :16, 32:48] = 200  # its first patch
    new = novelty(Video.from_frames(frames, fps=8), None, PatchGrid(4, 4, is_square=True))
    assert np.argwhere(new).tolist() == [[1, 0, 0]]


def test_frames_of_a_step_count_together():
    frames = grey(4)
    frames[1:, :16, :16] = 200  # within the first pair
    frames[2:, 16:32, :16] = 200
    frames[3:, 32:48, :16] = 200
    new = novelty(Video.from_frames(frames, fps=8), None, PatchGrid(4, 4, frames_per_step=2))
    assert np.argwhere(new).tolist() == [[1, 1, 0], [1, 2, 0]]


def recording(t: list[int], x: list[int], y: list[int]) -> Events:
    sensor = SensorSize(128, 96)
    return Events.checked(np.array(x), np.array(y), np.array(t), np.ones(len(t), int), sensor)


def test_a_recording_that_spans_the_frames_is_counted_in_their_place():
    video = Video.from_frames(grey(3), fps=10)  # still: simulated events would be none
    events = recording([0, 150_000, 160_000, 199_000], [0, 127, 127, 0], [0, 95, 95, 0])
    new = novelty(video, events, GRID)
    num_pixels = 32 * 24
    assert new[2, 3, 3] == pytest.approx(2 / num_pixels)
    assert new[2, 0, 0] == pytest.approx(1 / num_pixels)
    assert new[1].sum() == pytest.approx(1 / num_pixels)


def test_a_recording_of_the_end_alone_is_left_aside():
    frames = grey(8)
    frames[1:, :16, :16] = 200
    events = recording([860_000, 870_000], [127, 127], [95, 95])
    new = novelty(Video.from_frames(frames, fps=8), events, GRID)
    assert np.argwhere(new).tolist() == [[1, 0, 0]]


def test_large_frames_and_tiny_ones_have_every_patch(rng):
    for height, width in ((1080, 1920), (3, 5)):
        frames = rng.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
        new = novelty(Video.from_frames(frames, fps=8), None, PatchGrid(4, 4))
        assert new.shape == (2, 4, 4)
        assert np.isfinite(new).all()
    assert (
        novelty(Video.from_frames(grey(2, 1080, 1920), 8), None, PatchGrid(30, 60)).shape[1] == 30
    )
