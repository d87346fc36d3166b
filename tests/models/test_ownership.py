"""The names under which parts of a video are cached."""

import numpy as np

from headstart.models.ownership import owned_id, part_id


def test_a_part_of_a_callers_video_is_named_by_its_number(rng):
    frames = rng.integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
    assert part_id("camera-1", 2, frames) == part_id("camera-1", 2, 255 - frames)
    assert part_id("camera-1", 2, frames) != part_id("camera-1", 3, frames)


def test_a_part_of_an_owners_video_is_named_by_its_owner_pixels_and_times(rng):
    frames = rng.integers(0, 256, (1, 8, 8, 3), dtype=np.uint8)
    north = owned_id("north", "clip")
    name = part_id(north, 2, frames, {"fps": 8})
    assert name == part_id(owned_id("north", "another clip"), 5, frames, {"fps": 8})
    others = [
        part_id(north, 2, 255 - frames, {"fps": 8}),
        part_id(north, 2, frames.reshape(1, 4, 16, 3), {"fps": 8}),
        part_id(north, 2, frames, {"fps": 9}),
        part_id(north, 2, frames),
        part_id(owned_id("south", "clip"), 2, frames, {"fps": 8}),
    ]
    assert len({name, *others}) == 1 + len(others)
