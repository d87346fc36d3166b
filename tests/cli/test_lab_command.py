"""`headstart lab data`, `train` and `drive`, where no training is needed to see they are right."""

import numpy as np
from headstart_lab.cache import Cache, Recipe
from headstart_lab.pair import find_pair
from typer.testing import CliRunner

from headstart.cli import app
from headstart.media.clip import ClipFiles


def lab(*arguments):
    return CliRunner().invoke(app, ["lab", *(str(argument) for argument in arguments)])


def test_data_renders_drives_of_both_splits_and_keeps_what_is_there(tmp_path):
    cache = Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--drives", 2, "--held-out", 1, "--clips", 1)
    assert done.exit_code == 0, done.output
    assert [cache.has(seed) for seed in (0, 1, 2, 90_000)] == [True, True, False, True]


def test_drives_of_another_length_are_refused(tmp_path):
    Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--drives", 1, "--held-out", 1, "--clips", 2)
    assert done.exit_code == 1
    assert "--clips 1" in " ".join(done.output.split())


def test_training_without_drives_says_what_to_run(tmp_path):
    done = lab("train", tmp_path / "none", tmp_path / "out", "--steps", 1)
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
    assert "choose another directory" in " ".join(done.output.split())
