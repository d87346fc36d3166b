"""A model that is not as it was made is recognised, by us and by sha256sum."""

import subprocess

import pytest

from headstart.doctor.digests import FILE, changed_files, write_digests


@pytest.fixture
def model(tmp_path):
    for name in ("config.json", "model.safetensors", "README.md"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    write_digests(tmp_path)
    return tmp_path


def test_a_bit_that_differs_and_a_file_that_is_gone_are_noticed(model):
    assert changed_files(model) == []
    write_digests(model)  # does not count itself
    assert changed_files(model) == []
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[50] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    (model / "config.json").unlink()
    assert changed_files(model) == ["config.json", "model.safetensors"]
    (model / FILE).unlink()
    assert changed_files(model) == [FILE]


def test_a_card_may_be_written_later(model):
    (model / "README.md").write_text("what it is")
    assert changed_files(model) == []


def test_sha256sum_reads_the_same_file(model):
    check = ["sha256sum", "--check", FILE]
    assert subprocess.run(check, cwd=model, capture_output=True, check=False).returncode == 0
    (model / "config.json").write_text("other")
    assert subprocess.run(check, cwd=model, capture_output=True, check=False).returncode == 1
