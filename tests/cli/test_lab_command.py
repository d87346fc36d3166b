"""`headstart lab data` and `train`, where no training is needed to see that they are right."""

from typer.testing import CliRunner

from headstart.cli import app


def lab(*arguments):
    return CliRunner().invoke(app, ["lab", *(str(argument) for argument in arguments)])


def test_data_renders_drives_of_both_splits_and_keeps_what_is_there(tmp_path):
    from headstart.lab.cache import Cache, Recipe

    cache = Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--drives", 2, "--held-out", 1, "--clips", 1)
    assert done.exit_code == 0, done.output
    assert [cache.has(seed) for seed in (0, 1, 2, 90_000)] == [True, True, False, True]


def test_drives_of_another_length_are_refused(tmp_path):
    from headstart.lab.cache import Cache, Recipe

    Cache(tmp_path, Recipe(num_clips=1, width=28, height=28))
    done = lab("data", tmp_path, "--drives", 1, "--held-out", 1, "--clips", 2)
    assert done.exit_code == 1
    assert "--clips 1" in " ".join(done.output.split())


def test_training_without_drives_says_what_to_run(tmp_path):
    done = lab("train", tmp_path / "none", tmp_path / "out", "--steps", 1)
    assert done.exit_code == 1
    assert "holds no rendered drives" in done.output
    assert not (tmp_path / "none").exists()
