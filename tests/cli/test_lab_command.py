"""`headstart lab data`, `train` and `drive`, where no training is needed to see they are right."""

import numpy as np
import pytest
from typer.testing import CliRunner

from headstart.cli import app
from headstart.doctor.digests import FILE, write_digests
from headstart.media.clip import ClipFiles
from headstart_lab import pair as pairs
from headstart_lab.cache import Cache, Recipe
from headstart_lab.pair import find_pair

WRITERS = [
    ("tiny",),
    ("tiny", "--real-geometry"),
    ("train", "--set", "steps=1", "--model", "target"),
]
"""The commands that write models: what they are given besides their directory."""


def lab(*arguments):
    return CliRunner().invoke(app, ["lab", *(str(argument) for argument in arguments)])


def test_data_renders_drives_of_both_splits_and_keeps_what_is_there(tmp_path):
    cache = Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--set=drives=2", "--set=held_out=1", "--set=clips=1")
    assert done.exit_code == 0, done.output
    assert [cache.has(seed) for seed in (0, 1, 2, 90_000)] == [True, True, False, True]


def test_drives_of_another_length_are_refused(tmp_path):
    Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--set=drives=1", "--set=held_out=1", "--set=clips=2")
    assert done.exit_code == 1
    assert "--set clips=1" in " ".join(done.output.split())


def test_training_without_drives_says_what_to_run(tmp_path):
    done = lab("train", tmp_path / "none", tmp_path / "out", "--set=steps=1")
    assert done.exit_code == 1
    assert "holds no rendered drives" in done.output
    assert not (tmp_path / "none").exists()


def test_a_drive_is_written_beside_the_pair(tmp_path):
    for _ in range(2):  # again into the same directory
        done = lab("drive", tmp_path / "demo", "--seconds", 2)
        assert done.exit_code == 0, done.output
    pair = find_pair()
    for model in (pair.target, pair.drafter):
        weights = (tmp_path / "demo" / model.name / "model.safetensors").read_bytes()
        assert weights == (model / "model.safetensors").read_bytes()
    pictures = []
    for second in range(2):
        video = tmp_path / "demo" / f"second-{second}.mp4"
        clip = ClipFiles(video, video.with_suffix(".npz"), stop_us=1_000_000).read(num_frames=8)
        assert len(clip.video.frames) == 8
        assert clip.video.times_us[0] == 0
        assert 950_000 <= clip.events.t[0] <= clip.events.t[-1] < 1_000_000
        pictures.append(clip.video.frames)
    assert not np.array_equal(*pictures)


def test_a_drive_overwrites_nobodys_model(tmp_path):
    (tmp_path / "target").mkdir()
    done = lab("drive", tmp_path, "--seconds", 1)
    assert done.exit_code == 1
    assert "choose another directory" in told(done)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A pair in place of the installed one, so that a fault does not cost the real one."""
    pair = tmp_path / "installed"
    for model in (pair / "target", pair / "drafter"):
        model.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (model / name).write_text("trained")
        write_digests(model)
    monkeypatch.setattr(pairs, "INSTALLED", pair)
    return pair


def write_models(directory, command, *options):
    drives = [directory.parent / "drives"] if command == "train" else []
    return lab(command, *drives, directory, *options)


def contents(directory):
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def told(done):
    return " ".join(done.output.split())


@pytest.mark.parametrize("command", WRITERS, ids=lambda command: " ".join(map(str, command)))
def test_nothing_is_written_through_a_link_nor_over_a_trained_model(command, installed, tmp_path):
    trained, demo = contents(installed), tmp_path / "demo"
    assert lab("drive", demo, "--seconds", 1).exit_code == 0
    given = contents(demo)
    linked, filed = tmp_path / "linked", tmp_path / "filed"
    for model in ("target", "drafter"):
        (filed / model).mkdir(parents=True)
        (filed / model / "config.json").symlink_to(installed / model / "config.json")
    linked.mkdir()
    (linked / "target").symlink_to(installed / "target")
    over = tmp_path / "over"  # a link further up is a person's own; what it leads to counts
    over.symlink_to(installed)
    for directory, why in (
        (demo, "holds a trained model"),
        (linked, "is a link"),
        (filed, "is a link"),
        (over, "inside the installed pair"),
        (installed, "inside the installed pair"),
    ):
        done = write_models(directory, *command)
        assert done.exit_code == 1
        assert why in told(done)
        assert "choose another directory" in told(done).lower()
    assert contents(installed) == trained
    assert contents(demo) == given


def test_what_a_drive_leaves_can_be_written_to_by_any_program(installed, tmp_path):
    trained = contents(installed)
    demo = tmp_path / "demo"
    assert lab("drive", demo, "--seconds", 1).exit_code == 0
    for model in ("target", "drafter"):
        for path in (demo / model).iterdir():
            path.write_text("noise" if path.name != FILE else path.read_text())
    assert contents(installed) == trained
    assert lab("drive", demo, "--seconds", 1).exit_code == 0  # which makes it good again
    for model in ("target", "drafter"):
        assert contents(demo / model) == contents(installed / model)


def test_a_drive_replaces_links_that_it_once_made(installed, tmp_path):
    demo = tmp_path / "demo"
    demo.mkdir()
    (demo / "target").symlink_to(installed / "target")
    assert lab("drive", demo, "--seconds", 1).exit_code == 0
    assert not (demo / "target").is_symlink()
    assert contents(demo / "target") == contents(installed / "target")


def test_untrained_models_may_be_written_again(tmp_path):
    for _ in range(2):
        done = lab("tiny", tmp_path / "tiny")
        assert done.exit_code == 0, done.output
    assert not (tmp_path / "tiny" / "target" / FILE).exists()
