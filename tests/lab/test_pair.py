"""The trained pair is found, and an error says what to run where it is missing."""

from pathlib import Path

import pytest

from headstart_lab import pair as pairs
from headstart_lab.errors import LabError
from headstart_lab.pair import Pair, find_pair

MAX_BYTES = 80_000_000


def write_pair(directory: Path) -> None:
    for which in ("target", "drafter"):
        (directory / which).mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (directory / which / name).write_text("{}")


def test_a_package_without_weights_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setattr(pairs, "INSTALLED", tmp_path / "pair")
    with pytest.raises(LabError, match=r"without its weights(.|\n)*pip install(.|\n)*lab train"):
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
