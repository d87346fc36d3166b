"""The trained pair is found after a plain install, and its absence says what to run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.errors import LabError
from headstart.lab import pair as pairs
from headstart.lab.pair import Pair, find_pair

ROOT = Path(__file__).parents[2]
MODEL_FILES = ("config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json")
MAX_BYTES = 80_000_000


def write_pair(directory: Path) -> None:
    for which in ("target", "drafter"):
        (directory / which).mkdir(parents=True)
        for name in MODEL_FILES:
            (directory / which / name).write_text("{}")
        notes = directory / "training" / which
        notes.mkdir(parents=True)
        for name in ("results.json", "loss.png", "checkpoint.pt", "checkpoint.pt.partial"):
            (notes / name).write_text("{}")


def test_a_plain_install_carries_the_pair_and_no_state_of_its_training(tmp_path):
    source, site = tmp_path / "lab", tmp_path / "site"
    shutil.copytree(ROOT / "lab", source, ignore=shutil.ignore_patterns("pair", "*.egg-info"))
    write_pair(source / "headstart_lab" / "pair")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    pip += ["--no-build-isolation", "--target", str(site), str(source)]
    subprocess.run(pip, check=True, capture_output=True)
    search = os.pathsep.join([str(site), str(ROOT / "src")])
    found = subprocess.run(
        [sys.executable, "-c", "from headstart.lab.pair import find_pair as f; print(f().target)"],
        env={**os.environ, "PYTHONPATH": search},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert Path(found) == site / "headstart_lab" / "pair" / "target"
    installed = {
        str(path.relative_to(site / "headstart_lab" / "pair"))
        for path in (site / "headstart_lab" / "pair").rglob("*")
        if path.is_file()
    }
    models = {f"{which}/{name}" for which in ("target", "drafter") for name in MODEL_FILES}
    notes = {
        f"training/{which}/{name}"
        for which in ("target", "drafter")
        for name in ("results.json", "loss.png")
    }
    assert installed == models | notes


def test_no_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(pairs, "PACKAGE", "headstart_lab_that_nobody_has")
    with pytest.raises(LabError, match=r"not installed(.|\n)*pip install \./lab(.|\n)*lab train"):
        find_pair()


def test_a_package_without_weights_says_what_to_run(monkeypatch, tmp_path):
    (tmp_path / "headstart_lab_bare").mkdir()
    (tmp_path / "headstart_lab_bare" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(pairs, "PACKAGE", "headstart_lab_bare")
    with pytest.raises(LabError, match=r"without its weights(.|\n)*headstart lab train"):
        find_pair()


def test_half_a_pair_is_none(tmp_path):
    write_pair(tmp_path)
    assert Pair.at(tmp_path) == Pair(tmp_path / "target", tmp_path / "drafter")
    (tmp_path / "drafter" / "model.safetensors").unlink()
    with pytest.raises(LabError, match=r"drafter lacks model\.safetensors"):
        Pair.at(tmp_path)


def test_the_trained_pair_is_small_bf16_and_names_its_seed(trained_pair):
    import json

    from safetensors import safe_open

    for model in (trained_pair.target, trained_pair.drafter):
        with safe_open(model / "model.safetensors", "pt") as tensors:
            assert {tensors.get_slice(name).get_dtype() for name in tensors.keys()} == {"BF16"}  # noqa: SIM118
        notes = model.parent / "training" / model.name / "results.json"
        assert json.loads(notes.read_text())["seed"] is not None
    weights = (trained_pair.target, trained_pair.drafter)
    assert sum((model / "model.safetensors").stat().st_size for model in weights) <= MAX_BYTES
