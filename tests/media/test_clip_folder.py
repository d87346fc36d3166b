"""A folder's recordings, second by second: decoded once, the same as read one by one."""

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media import video as video_module
from headstart.media.events import SensorSize
from headstart.media.video import Video, read_windows
from headstart_events.simulation import simulate
from headstart_events.writers.writing import write_recording
from headstart_lab.street import street_video
from headstart_research.bench.clip_folder import folder_streams

SECOND_US = 1_000_000


@pytest.fixture
def drive(tmp_path):
    street = street_video(num_frames=110, width=64, height=48)  # 4.4 s
    street.write(tmp_path / "drive.mp4")
    events = simulate(zip(street.times_us.tolist(), street.frames, strict=True))
    write_recording(tmp_path / "drive.npz", events, SensorSize(64, 48))
    return tmp_path / "drive.mp4"


def test_windows_in_one_pass_are_those_read_one_by_one(drive):
    windows = [(0, SECOND_US), (2 * SECOND_US, 3 * SECOND_US), (3_200_000, 3_300_000)]
    together = list(read_windows(drive, windows, 8))
    assert [len(video) for video in together] == [8, 8, 3]
    for (start_us, stop_us), video in zip(windows, together, strict=True):
        alone = Video.read(drive, 8, start_us, stop_us)
        assert np.array_equal(video.frames, alone.frames)
        assert np.array_equal(video.times_us, alone.times_us)


def test_a_window_without_a_frame_is_left_out(drive):
    windows = [(0, 100_000), (10_000, 20_000), (200_000, 300_000)]
    assert len(list(read_windows(drive, windows, 2))) == 2


def test_clips_that_are_left_out_are_not_decoded_into_pictures(drive, monkeypatch):
    (stream,) = folder_streams(drive.parent)
    assert stream.count() == 4
    everything = dict(stream.clips(8))
    assert sorted(everything) == [0, 1, 2, 3]
    taken = []
    take = video_module._take
    monkeypatch.setattr(
        video_module, "_take", lambda *given: taken.append(given[2].tolist()) or take(*given)
    )
    some = dict(stream.clips(8, leave_out={0, 2}))
    assert sorted(some) == [1, 3]
    assert all(some[number].digest() == everything[number].digest() for number in some)
    assert len(taken) == 2


def test_a_folder_is_decoded_once_however_long_it_is(drive, monkeypatch):
    (stream,) = folder_streams(drive.parent)
    decode, times = video_module._decode, []
    monkeypatch.setattr(video_module, "_decode", lambda path: times.append(path) or decode(path))
    assert len(list(stream.clips(8))) == 4
    assert len(times) == 1


def test_a_folder_without_recordings_says_what_it_looked_for(tmp_path):
    with pytest.raises(MediaError, match=r"events/left/events\.h5.*\.mp4"):
        folder_streams(tmp_path)
