"""The eyes' lessons: labels are what the scene holds, and can be learned."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from headstart.lab.cache import Cache, Recipe
from headstart.lab.language.sighting import sight_in_frames
from headstart.lab.split import Split
from headstart.lab.training.course import Course
from headstart.lab.training.eyes import Naming
from headstart.lab.training.labels import PATCH, UNKNOWN, WHOLE, label_frame, label_window
from headstart.lab.training.lessons import CachedLessons
from headstart.lab.training.loop import train
from headstart.lab.training.optimizer import optimizer_of
from headstart.lab.training.savepoint import Savepoint
from headstart.lab.world.drive import Drive, frame_times_us
from headstart.lab.world.kinds import Kind, Pace, Place

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


@pytest.mark.slow
@pytest.mark.parametrize("which", ["target", "drafter"])
def test_eyes_learn_to_name_what_they_are_shown(learners, tmp_path, which):
    learner = learners[0] if which == "target" else learners[1]
    cache = Cache(tmp_path, Recipe(num_clips=2, width=28, height=28))
    cache.fill([*Split.TRAIN.seeds(2)])
    lessons = CachedLessons(cache, [*Split.TRAIN.seeds(2)], which)
    course = Course(40, batch_size=4, learning_rate=2e-3, num_examinations=2, num_examined=4)
    naming = Naming(learner, lessons, lessons, course)
    before = naming.accuracies(4)
    eyes = nn.ModuleList([*learner.eyes, naming.heads])
    history = train(
        eyes, optimizer_of(eyes, 0.0), naming, course, Savepoint(tmp_path / "eyes.pt"), 1e9
    )
    assert np.mean(history.losses[-4:]) < 0.7 * history.losses[0]
    assert naming.accuracies(4)["place"] > before["place"]
