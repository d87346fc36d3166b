"""The cache: what it gives back is what the drive and the model's own view give."""

import numpy as np
import pytest

from headstart_lab import cache as caching
from headstart_lab.cache import Cache, Recipe, event_pictures
from headstart_lab.errors import LabError
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive

RECIPE = Recipe(num_clips=3, width=56, height=56)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    cache = Cache(tmp_path_factory.mktemp("drives"), RECIPE)
    cache.fill([4, 5])
    return cache


def clips_of(cache, seed):
    return [cache.clip(seed, second) for second in cache.recipe.seconds]


def test_a_clip_comes_back_as_it_was(cache):
    drive = Drive(4, RECIPE.size)
    for second, cached in zip((0, 15, 30), clips_of(cache, 4), strict=True):
        fresh = drive.clip(second)
        assert np.array_equal(cached.frames, fresh.clip.video.frames)
        assert np.array_equal(cached.slices, event_pictures(fresh.clip))
        for question in Question:
            assert cached.target[question] == TARGET_STYLE.answer(fresh.scene, question)
            assert cached.drafter[question] == DRAFTER_STYLE.answer(fresh.scene, question)


def test_filling_again_renders_only_what_is_missing(cache, monkeypatch):
    rendered = []
    monkeypatch.setattr(
        caching, "render_drive", lambda directory, seed, recipe: rendered.append(seed)
    )
    cache._path(5, "json").rename(cache.directory / "aside")
    cache.fill([4, 5])
    (cache.directory / "aside").rename(cache._path(5, "json"))
    assert rendered == [5]


def test_a_second_rendering_is_the_same_bytes(cache):
    path = cache._path(4, "json")
    before = path.read_bytes(), [clip.frames.tobytes() for clip in clips_of(cache, 4)]
    caching.render_drive(cache.directory, 4, RECIPE)
    assert (path.read_bytes(), [clip.frames.tobytes() for clip in clips_of(cache, 4)]) == before


def test_another_recipe_in_the_same_place_is_refused(cache):
    with pytest.raises(LabError, match="another directory"):
        Cache(cache.directory, Recipe(num_clips=9))
    assert Cache(cache.directory).recipe == RECIPE


def test_what_is_not_there_says_what_to_do(cache, tmp_path):
    with pytest.raises(LabError, match="fill"):
        cache.clip(77, 0)
    with pytest.raises(LabError, match="fill"):
        Cache(tmp_path)


def test_workers_render_the_same(cache, tmp_path):
    other = Cache(tmp_path, RECIPE)
    other.fill([4], num_workers=2)
    pairs = zip(clips_of(cache, 4), clips_of(other, 4), strict=True)
    assert all(np.array_equal(a.frames, b.frames) for a, b in pairs)


def test_the_splits_share_no_drive():
    assert not set(Split.TRAIN.value) & set(Split.HELD_OUT.value)
    assert list(Split.HELD_OUT.seeds(2, skip=1)) == [90_001, 90_002]
    with pytest.raises(LabError, match="fewer"):
        Split.HELD_OUT.seeds(10_001)
