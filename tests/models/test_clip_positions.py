"""Positions of a prompt from which patches are left out, and the names of parts under plans."""

import numpy as np

from headstart.media.approximate import PatchPlan
from headstart.models.kept_patches import KeptPatches, plan_of, planned
from headstart.models.ownership import owned_id, part_id
from headstart.models.video_llava.positions import clip_positions

TOKENS = 5


def whole_prompt(before: int, num_frames: int, after: int) -> np.ndarray:
    return np.arange(before + num_frames * TOKENS + after)


def test_tokens_keep_the_positions_of_the_whole_clip(rng):
    before, num_frames, after = 3, 6, 4
    for _ in range(50):
        kept = rng.random((num_frames, TOKENS)) < 0.5
        kept[-1, 0] = True
        shown = [step for step in range(num_frames) if kept[step].any()]
        offsets = before + np.cumsum([0, *(kept[step].sum() for step in shown)])
        frames = [
            (int(offset), step, kept[step])
            for offset, step in zip(offsets[:-1], shown, strict=True)
        ]
        mask = np.concatenate([np.ones(before), kept.reshape(-1), np.ones(after)]).astype(bool)
        expected = whole_prompt(before, num_frames, after)[mask]
        np.testing.assert_array_equal(clip_positions(len(expected), frames), expected)


def test_a_clip_that_is_shown_whole_is_counted_on():
    every = np.ones(TOKENS, dtype=bool)
    frames = [(2 + TOKENS * number, -1, every) for number in range(3)]
    np.testing.assert_array_equal(clip_positions(20, frames), np.arange(20))


def test_each_clip_of_a_prompt_begins_after_the_one_before():
    some = np.array([True, False, True, False, False])
    # Two clips without text between them, then one after a word.
    frames = [(1, 0, some), (3, 2, some), (5, 1, some), (8, 0, some)]
    expected = [0, 1, 3, 11, 13, 21, 23, 26, 27, 29, 32]
    assert clip_positions(11, frames).tolist() == expected


def test_text_alone_is_counted():
    assert clip_positions(4, []).tolist() == [0, 1, 2, 3]


def test_a_plan_reaches_its_parts_and_comes_back(rng):
    kept = rng.random((4, 3, 5)) < 0.4
    kept[2] = False
    parts = plan_of(planned(PatchPlan.of(kept)))
    assert list(parts) == [step for step in range(4) if kept[step].any()]
    for step, part in parts.items():
        again = KeptPatches.of(part.metadata())
        assert again.step == step
        np.testing.assert_array_equal(again.patches, kept[step])
    assert plan_of(None) is None
    assert plan_of({"fps": 8}) is None
    assert KeptPatches.of({"fps": 8}) is None


def test_a_plan_is_carried_to_a_grid_of_another_size():
    patches = np.array([[True, False], [False, False]])
    part = KeptPatches(0, patches)
    assert part.on(4, 4).sum() == 4
    assert part.on(4, 4)[:2, :2].all()
    np.testing.assert_array_equal(part.on(2, 2), patches)
    assert part.on(1, 1).all()  # something is always shown


def test_parts_under_other_plans_have_other_names(rng):
    frames = rng.integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
    kept = [KeptPatches(1, np.eye(2, dtype=bool)), KeptPatches(1, np.ones((2, 2), bool))]
    for uuid in ("camera-1", owned_id("north", "clip")):
        names = [part_id(uuid, 1, frames, one.metadata()) for one in kept]
        names += [part_id(uuid, 1, frames), part_id(uuid, 1, frames, kept[0].metadata())]
        assert len(set(names)) == 3
        assert names[0] == names[3]
