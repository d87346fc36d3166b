"""Where clips come from: folders and the lab."""

import pytest

from headstart.errors import CollectError
from headstart_lab.drive_streams import FIRST_DRIVE, drive_streams
from headstart_lab.split import Split
from headstart_lab.street import street_video
from headstart_lab.world.drive import Drive
from headstart_research.collect import clip_source
from headstart_research.collect.clip_source import HELD_OUT, folder_source, lab_source
from headstart_research.collect.shard import Shard


def test_a_folders_recordings_are_streams_of_seconds(tmp_path):
    for name, num_frames in (("long.mp4", 80), ("short.mp4", 30), ("none.mp4", 10)):
        street_video(num_frames=num_frames, width=64, height=48).write(tmp_path / name)
    source = folder_source(tmp_path, ["What?"], clips_a_stream=2)
    counted = {stream.name: count for stream, count in source.mine(Shard())}
    assert counted == {"long.mp4": 2, "none.mp4": 0, "short.mp4": 1}


def test_the_labs_drives_are_neither_the_pairs_nor_held_out():
    streams, questions = drive_streams(3)
    assert len(questions) == 4
    for stream in streams:
        assert stream.seed >= FIRST_DRIVE
        assert stream.seed in Split.TRAIN.value
        assert stream.seed not in Split.HELD_OUT.value
    clips = streams[0].clips(8, leave_out={0, 2})
    for number in (1, 3):
        found, clip = next(clips)
        assert found == number
        assert clip.digest() == Drive(FIRST_DRIVE).clip(number).clip.digest()


def test_held_out_drives_are_those_that_nothing_is_trained_on():
    streams, questions = drive_streams(3, held_out=True)
    assert [stream.seed for stream in streams] == list(Split.HELD_OUT.value[:3])
    assert questions == drive_streams(1)[1]
    assert {stream.name for stream in streams}.isdisjoint(s.name for s in drive_streams(9000)[0])


def test_the_lab_is_found_by_its_entry_point():
    source = lab_source(5, 7)
    assert source.streams[0].name == f"drive-{FIRST_DRIVE}"
    assert [count for _, count in source.mine(Shard())] == [7] * 5
    assert len(source.questions) == 4
    assert lab_source(5, 7, ["Only this?"]).questions == ("Only this?",)
    assert source.name == "lab"
    held_out = lab_source(5, 7, held_out=True)
    assert held_out.name == HELD_OUT
    assert held_out.streams[0].name == f"drive-{Split.HELD_OUT.value[0]}"


def test_without_the_lab_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(clip_source, "entry_points", lambda **named: ())
    with pytest.raises(CollectError, match=r"pip install \./lab"):
        lab_source(5, 7)
