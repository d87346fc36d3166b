"""Texts to pre-train on: the target's words and end, about drives that nothing else uses."""

import json

import pytest

pytest.importorskip("transformers")

from typer.testing import CliRunner

from headstart.cli import app
from headstart.drafters.memory_log import read_memory_log
from headstart_lab.drive_streams import FIRST_DRIVE, FIRST_TEXT_DRIVE, DriveStream, drive_streams
from headstart_lab.errors import LabError
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.pair import find_pair
from headstart_lab.split import Split
from headstart_lab.texts import drive_texts, target_template, text_drives, write_texts
from headstart_lab.workloads import ROTATING
from headstart_lab.world.drive import Drive
from headstart_research.collect.answer_rows import logged_records
from headstart_research.collect.shard import Shard


@pytest.fixture(scope="module")
def template():
    return target_template(find_pair().target)


def test_a_text_is_what_the_target_was_taught_to_say_of_the_second(template):
    stream = DriveStream(FIRST_TEXT_DRIVE)
    rows = list(drive_texts(stream, 3, template))
    clip = Drive(stream.seed).clip(2)  # drawn, while the texts are not
    for row, question in zip(rows[2 * len(ROTATING) :], ROTATING, strict=True):
        assert row["question"] == question.usual
        said = template.decode(row["target_tokens"])
        assert said == TARGET_STYLE.answer(clip.scene, question).text
    assert len({row["target_tokens"] for row in rows}) > len(ROTATING)


def test_a_text_ends_where_the_target_stops_and_begins_without_a_mark(template):
    stop = json.loads((find_pair().target / "generation_config.json").read_text())
    for row in drive_texts(DriveStream(FIRST_TEXT_DRIVE), 2, template):
        tokens = row["target_tokens"]
        assert tokens.index(stop["eos_token_id"]) == len(tokens) - 1
        assert stop["bos_token_id"] not in tokens


def test_nothing_else_uses_the_drives_of_texts():
    collected, _ = drive_streams(FIRST_TEXT_DRIVE - FIRST_DRIVE)
    others = {stream.seed for stream in collected} | set(range(FIRST_DRIVE))
    for seed in range(3):
        drives = {stream.seed for stream in text_drives(500, seed)}
        assert len(drives) == 500
        assert not drives & others
        assert drives <= set(Split.TRAIN.value)


def test_neither_texts_nor_a_collection_may_take_the_others_drives():
    with pytest.raises(LabError, match="no more"):
        drive_streams(FIRST_TEXT_DRIVE - FIRST_DRIVE + 1)
    with pytest.raises(LabError, match="no more"):
        text_drives(len(Split.TRAIN.value) - FIRST_TEXT_DRIVE + 1, seed=0)


def test_the_seed_chooses_the_drives():
    assert text_drives(9, seed=4) == text_drives(9, seed=4)
    assert text_drives(9, seed=4) != text_drives(9, seed=5)


def test_the_command_writes_a_log_that_others_read(tmp_path):
    file = tmp_path / "new" / "texts.jsonl"
    words = ["lab", "texts", str(file), "--set=drives=3", "--set=clips=2", "--set=seed=1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "wrote 24 answers" in done.output
    records = logged_records(file, tenant="", shard=Shard())
    names = [stream.name for stream in text_drives(3, seed=1)]
    assert [record.stream for record in records] == [name for name in names for _ in range(8)]
    assert [record.question for record in records] == [each.usual for each in ROTATING] * 6
    assert {record.finish_reason for record in records} == {"stop"}
    remembered = read_memory_log(file)
    assert [each.tokens for each in remembered] == [record.answer_ids for record in records]


def test_a_broken_run_leaves_the_file_that_was_there(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text("earlier\n")

    def rows():
        yield {"stream": "drive-1"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_texts(file, rows())
    assert file.read_text() == "earlier\n"


def test_a_file_that_cannot_be_written_is_an_error_with_advice(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="name another file"):
        write_texts(tmp_path / "file" / "texts.jsonl", [])
