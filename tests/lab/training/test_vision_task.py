"""The vision task: labels are what the scene holds, and can be learned."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from headstart_lab.cache import Cache, Recipe
from headstart_lab.language.sighting import sight_in_frames
from headstart_lab.split import Split
from headstart_lab.training.labels import PATCH, UNKNOWN, WHOLE, label_frame, label_window
from headstart_lab.training.lessons import CachedLessons
from headstart_lab.training.practice import crowded
from headstart_lab.training.train_config import TrainConfig
from headstart_lab.training.vision_task import VisionTask
from headstart_lab.world.drive import LAB_SIZE, Drive, frame_times_us
from headstart_lab.world.kinds import Kind, Pace, Place
from headstart_research.training.loop import train
from headstart_research.training.optimizer import optimizer_of
from headstart_research.training.savepoint import Savepoint

GRID = 8


def scenes(num_drives=12):
    for seed in range(num_drives):
        drive = Drive(seed)
        for index in range(0, 40, 5):
            yield drive.scene(frame_times_us(index)[-1])


def test_every_one_who_is_shown_has_a_patch_unless_a_nearer_one_took_it():
    found = total = 0
    for scene in scenes():
        labels = label_frame(scene, GRID)
        kinds = {list(Kind)[kind - 1] for kind in labels.patches[0] if kind > 0}
        shown = {thing.kind for thing in scene.things if thing.in_frames}
        assert kinds <= shown
        found, total = found + len(kinds), total + len(shown)
    assert total > 50
    assert found > 0.9 * total


def test_whole_pictures_are_labelled_as_they_are_spoken_of():
    places = set()
    for scene in scenes():
        ground = sight_in_frames(scene).ground
        whole = dict(zip(WHOLE, label_frame(scene, GRID).whole, strict=True))
        assert list(Place)[whole["place"]] is ground.place
        assert whole["junction"] == ground.has_junction
        assert whole["pace"] == UNKNOWN
        places.add(ground.place)
    assert len(places) > 3


def test_events_tell_no_colour_no_lamp_and_of_a_standing_car_no_street():
    standing = 0
    for scene in scenes():
        labels = label_window(scene, GRID)
        whole = dict(zip(WHOLE, labels.whole, strict=True))
        assert whole["lamp"] == whole["daylight"] == UNKNOWN
        assert (labels.patches[list(PATCH).index("colour")] == UNKNOWN).all()
        if scene.pace is Pace.STANDING:
            standing += 1
            assert whole["place"] == UNKNOWN
        assert list(Pace)[whole["pace"]] is scene.pace
    assert standing


def test_a_crowd_is_never_the_same_twice_and_shows_more_to_name():
    book = [crowded("target", LAB_SIZE, GRID, number, seed=0) for number in range(20)]
    again = crowded("target", LAB_SIZE, GRID, 3, seed=0)
    assert np.array_equal(book[3].pictures, again.pictures)
    assert np.array_equal(book[3].labels.patches, again.labels.patches)
    assert len({each.pictures.tobytes() for each in book}) == len(book)
    usual = [label_frame(scene, GRID) for scene in scenes()]
    assert _named([each.labels for each in book]) > 1.5 * _named(usual)


def _named(labels):
    return np.mean([(each.patches[0] > 0).sum() for each in labels])


@pytest.mark.slow
@pytest.mark.parametrize("which", ["target", "drafter"])
def test_eyes_learn_to_name_what_they_never_saw(learners, tmp_path, which):
    learner = learners[0] if which == "target" else learners[1]
    cache = Cache(tmp_path, Recipe(num_clips=4, width=28, height=28))
    cache.fill([*Split.HELD_OUT.seeds(4)])
    unseen = CachedLessons(cache, [*Split.HELD_OUT.seeds(4)], which)
    config = TrainConfig(50, batch_size=8, learning_rate=2e-3, num_examinations=2, num_examined=16)
    task = VisionTask(learner, unseen, config)
    before = task.held_out_loss()
    modules = nn.ModuleList([*learner.vision_modules, task.heads])
    savepoint = Savepoint(tmp_path / "eyes.pt")
    history = train(modules, optimizer_of(modules, 0.0), task, config, savepoint, 1e9)
    assert history.held_out[-1][1] < 0.95 * before
    if which == "target":
        assert task.accuracies(16)["daylight"] > 0.75
