"""Records on disk: all of them, to the bit, or no file."""

import os

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError
from headstart_research.collect.record import Record
from headstart_research.collect.record_table import read_records, write_records
from tests.collect.records import FEATURES, clip_records, content


def test_records_come_back_to_the_bit(tmp_path):
    records = [record for clip in range(3) for record in clip_records("front", clip)]
    write_records(tmp_path / "0.parquet", records, FEATURES)
    read = list(read_records(tmp_path / "0.parquet"))
    assert [content(record) for record in read] == [content(record) for record in records]


def test_a_record_of_a_log_has_no_features(tmp_path):
    record = Record("", 0, 0, "", "What?", (), (5, 6), "stop")
    write_records(tmp_path / "0.parquet", [record], ())
    (read,) = read_records(tmp_path / "0.parquet")
    assert content(read) == content(record)


def test_features_of_a_clip_are_stored_once_however_much_is_asked(tmp_path):
    sizes = []  # features of 2 MB, as a target of 7B has: too large for zstd to find them again
    for num_questions in (1, 300):
        file = tmp_path / f"{num_questions}.parquet"
        clips = [clip_records("front", clip, num_questions, size=200_000) for clip in range(4)]
        write_records(file, [record for clip in clips for record in clip], FEATURES)
        sizes.append(file.stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]


def test_a_file_that_was_not_finished_has_not_its_name(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CollectError, match=r"No space left on device.*run the same command"):
        write_records(tmp_path / "0.parquet", clip_records("front", 0), FEATURES)
    assert not (tmp_path / "0.parquet").exists()


def test_a_damaged_file_says_what_to_do(tmp_path):
    file = tmp_path / "0.parquet"
    write_records(file, clip_records("front", 0), FEATURES)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CollectError, match="delete it"):
        list(read_records(file))
