"""A user's folder: videos with events beside them, or DSEC's own layout."""

import numpy as np
import pytest
from PIL import Image

from headstart.errors import BenchError, MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.simulation import simulate
from headstart_events.writers.writing import write_recording
from headstart_lab.street import street_video
from headstart_research.bench.folder import clips_in, paced_workloads


def seen(street):
    return simulate(zip(street.times_us.tolist(), street.frames, strict=True))


def test_videos_become_clips_of_a_second_with_the_events_of_the_same_name(tmp_path):
    street = street_video(num_frames=80)  # 3.2 s
    street.write(tmp_path / "drive.mp4")
    write_recording(tmp_path / "drive.npz", seen(street), SensorSize(320, 240))
    street.write(tmp_path / "alone.mp4")
    (tmp_path / "notes.txt").write_text("not a recording")

    clips = clips_in(tmp_path, max_clips=10, num_frames=8)
    alone, drive = clips[:3], clips[3:]
    assert len(drive) == 3
    assert all(clip.events is None for clip in alone)
    for number, clip in enumerate(drive):
        assert len(clip.video) == 8
        assert number * 1_000_000 <= clip.video.times_us[0]
        assert clip.video.times_us[-1] < (number + 1) * 1_000_000
        # The events of the clip's last 50 ms: models of events refuse long windows.
        assert len(clip.events)
        assert clip.events.t[0] >= (number + 1) * 1_000_000 - 50_000
        assert clip.events.t[-1] < (number + 1) * 1_000_000
    assert len(clips_in(tmp_path, max_clips=2, num_frames=8)) == 2


def write_dsec(sequence, street):
    """A sequence as DSEC lays it out, on a clock that does not start at zero."""
    h5py = pytest.importorskip("h5py")
    start_us = 41_000_000
    pictures = sequence / "images" / "left" / "rectified"
    pictures.mkdir(parents=True)
    for number, frame in enumerate(street.frames):
        Image.fromarray(frame).save(pictures / f"{number:06d}.png")
    np.savetxt(sequence / "images" / "timestamps.txt", street.times_us + start_us, fmt="%d")
    events = Events.concatenate(list(seen(street)))
    (sequence / "events" / "left").mkdir(parents=True)
    with h5py.File(sequence / "events" / "left" / "events.h5", "w") as file:
        for name, column in zip("xytp", (events.x, events.y, events.t, events.p), strict=True):
            file[f"events/{name}"] = column
        times_ms = np.arange(int(events.t[-1]) // 1000 + 2) * 1000
        file["ms_to_idx"] = np.searchsorted(events.t, times_ms).astype(np.uint64)
        file["t_offset"] = np.int64(start_us)
    return start_us


def test_dsec_sequences_are_read_as_they_are_unpacked(tmp_path):
    street = street_video(num_frames=60, width=640, height=480)  # 2.4 s
    start_us = write_dsec(tmp_path / "train" / "interlaken_00_a", street)
    clips = clips_in(tmp_path, max_clips=10, num_frames=8)
    assert len(clips) == 2
    for number, clip in enumerate(clips):
        begins_us = start_us + number * 1_000_000
        assert len(clip.video) == 8
        assert clip.video.times_us[0] == begins_us
        assert len(clip.events)
        assert clip.events.t[0] >= begins_us + 950_000
        assert clip.events.t[-1] < begins_us + 1_000_000


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(MediaError, match="no recordings"):
        clips_in(tmp_path, 4, 8)
    street_video(num_frames=10).write(tmp_path / "short.mp4")
    with pytest.raises(BenchError, match="no clip of a second"):
        clips_in(tmp_path, 4, 8)
    street = street_video(num_frames=60, width=640, height=480)
    write_dsec(tmp_path / "zurich", street)
    note = tmp_path / "zurich" / "images" / "timestamps.txt"
    note.write_text("1\n2\n")
    with pytest.raises(MediaError, match="2 times for 60 pictures"):
        clips_in(tmp_path, 4, 8)
    note.unlink()
    with pytest.raises(MediaError, match=r"timestamps\.txt"):
        clips_in(tmp_path, 4, 8)


def test_one_video_becomes_whole_clips_and_the_same_ones_live(tmp_path):
    street_video(num_frames=80).write(tmp_path / "drive.mp4")  # 3.2 s
    whole, live = paced_workloads(tmp_path / "drive.mp4", ["What?"], 10, 32, num_frames=5)
    items = whole.camera(0, 0)
    assert live.camera(1, 0) == items
    assert len(items) == 3
    assert (whole.is_live, live.is_live, live.frame_s) == (False, True, 0.2)
    for item in items:
        # A model that reads times reads the same ones live and of a whole clip.
        assert item.clip.video.times_us.tolist() == [0, 200_000, 400_000, 600_000, 800_000]
    pictures = [item.clip.video.frames for item in items]
    assert not np.array_equal(pictures[0], pictures[1])
    with pytest.raises(BenchError, match="fewer than 60 frames: give one with more"):
        paced_workloads(tmp_path / "drive.mp4", [], 10, 32, num_frames=60)
