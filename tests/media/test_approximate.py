"""Plans: which patches of a clip an approximate answer looks at."""

import numpy as np
import pytest

from headstart.errors import ApproximateError
from headstart.media.approximate import Approximate, ApproximateFrames, PatchPlan
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid
from headstart.media.video import Video

GRID = PatchGrid(4, 4)
NUM_FRAMES = 8
NUM_PATCHES = NUM_FRAMES * 16
BUDGETS = (0.75, 0.5, 0.25, 0.1, 1.0, 40, 1)


def street(rng: np.random.Generator) -> Clip:
    """A bright square wanders over a still picture."""
    still = rng.integers(80, 120, (64, 64, 3), dtype=np.uint8)
    frames = np.repeat(still[None], NUM_FRAMES, axis=0)
    for number, frame in enumerate(frames):
        frame[20:30, 8 * number : 8 * number + 8] = 250
    return Clip(Video.from_frames(frames, fps=8))


def noise(rng: np.random.Generator) -> Clip:
    """Everything changes all the time."""
    frames = rng.integers(0, 256, (NUM_FRAMES, 64, 64, 3), dtype=np.uint8)
    return Clip(Video.from_frames(frames, fps=8))


def still() -> Clip:
    return Clip(Video.from_frames(np.full((NUM_FRAMES, 64, 64, 3), 90, np.uint8), fps=8))


def kept(plan: PatchPlan) -> np.ndarray:
    """Of all steps."""
    every = np.zeros((plan.num_steps, *plan.kept.shape[1:]), dtype=bool)
    every[plan.steps] = plan.kept
    return every


def test_of_a_still_scene_the_last_frame_alone_is_shown():
    for way in (Approximate(), Approximate(0.75), ApproximateFrames()):
        plan = way.plan(still(), GRID)
        assert plan.steps.tolist() == [NUM_FRAMES - 1]
        assert plan.kept.all()


def test_what_moves_is_shown_and_what_stands_still_only_once(rng):
    every = kept(Approximate().plan(street(rng), GRID))
    assert every[-1].all()
    assert every[:-1, 1].any(axis=1).all()  # the row of the square, in every frame
    assert not every[:-1, [0, 2, 3]].any()


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_is_kept_and_used_where_there_is_something_to_show(rng, budget):
    most = round(budget * NUM_PATCHES) if isinstance(budget, float) else budget
    for clip in (street(rng), noise(rng), still()):
        assert 1 <= Approximate(budget).plan(clip, GRID).kept.sum() <= most
    if budget != 1.0:
        assert Approximate(budget).plan(noise(rng), GRID).kept.sum() > 0.9 * min(most, NUM_PATCHES)


def test_a_whole_budget_of_a_lively_scene_leaves_nothing_out(rng):
    plan = Approximate(1.0).plan(noise(rng), GRID)
    assert plan.omission.num_dropped_patches == 0


def test_slow_change_adds_up_until_the_patch_is_shown_again():
    frames = np.full((NUM_FRAMES, 64, 64, 3), 50, dtype=np.uint8)
    for number in range(NUM_FRAMES):
        frames[number, :16, :16] = 50 * 1.25**number  # just over one event a frame
    clip = Clip(Video.from_frames(frames, fps=8))
    shown = kept(Approximate(18).plan(clip, GRID))
    (first, second) = np.flatnonzero(shown[:-1, 0, 0])  # not all seven, and not none
    assert second - first > 1  # what adds up begins anew each time that the patch is shown
    assert shown[:-1].sum() == 2


@pytest.mark.parametrize("budget", range(1, NUM_FRAMES + 1))
def test_so_many_frames_are_shown_and_always_the_last(rng, budget):
    for clip in (street(rng), noise(rng), still()):
        plan = ApproximateFrames(budget).plan(clip, GRID)
        assert len(plan.steps) == budget
        assert plan.steps[-1] == NUM_FRAMES - 1
        assert plan.kept.all()


def test_frames_lie_where_something_happens(rng):
    frames = np.full((NUM_FRAMES, 64, 64, 3), 90, dtype=np.uint8)
    frames[5:] = rng.integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
    plan = ApproximateFrames(4).plan(Clip(Video.from_frames(frames, fps=8)), GRID)
    assert set(plan.steps.tolist()) >= {5, 6, 7}


def test_the_same_clip_gives_the_same_plan(rng):
    clip = street(rng)
    first, second = (Approximate(0.3).plan(clip, GRID) for _ in range(2))
    np.testing.assert_array_equal(kept(first), kept(second))


def test_a_plan_says_what_it_leaves_out(rng):
    plan = ApproximateFrames(2).plan(noise(rng), GRID)
    assert plan.omission.num_patches == NUM_PATCHES
    assert plan.omission.num_dropped_patches == 6 * 16
    assert plan.omission.num_dropped_steps == 6
    assert plan.omission.dropped_share == 0.75


@pytest.mark.parametrize("budget", [0, 0.0, -1, 1.5, True, float("nan")])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(ApproximateError, match="give a share"):
        Approximate(budget)


@pytest.mark.parametrize("budget", [0, -2, 0.5])
def test_what_is_no_number_of_frames_is_refused(budget):
    with pytest.raises(ApproximateError, match="whole number"):
        ApproximateFrames(budget)


def test_pictures_alone_cannot_be_shown_in_part():
    picture = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(ApproximateError, match="only a video"):
        Approximate(0.5).plan(Clip(pictures=(picture,)), GRID)
