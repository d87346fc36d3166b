import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.video import Video
from headstart_events.writers.writing import write_recording
from tests.media.synthetic import SENSOR, random_events


@pytest.fixture
def files(tmp_path):
    levels = np.linspace(20, 230, 20).astype(np.uint8)
    frames = np.broadcast_to(levels[:, None, None, None], (20, 48, 64, 3)).copy()
    Video.from_frames(frames, fps=10).write(tmp_path / "clip.mp4", fps=10)
    events = random_events(20_000, start_us=0, duration_us=2_000_000)
    write_recording(tmp_path / "clip.h5", [events], SENSOR)
    return tmp_path / "clip.mp4", tmp_path / "clip.h5", events


def test_both_streams_of_a_window_lie_in_it(files):
    video, recording, events = files
    clip = ClipFiles(video, recording, start_us=500_000, stop_us=800_000).read()
    assert clip.video.times_us.tolist() == [500_000, 600_000, 700_000]
    assert clip.events.digest() == events.between(500_000, 800_000).digest()


def test_events_of_another_clock_are_brought_onto_the_videos(files, tmp_path):
    video, recording, events = files
    write_recording(tmp_path / "later.h5", [events.shifted(51_000_000_000)], SENSOR)
    same = ClipFiles(video, recording, 500_000, 800_000).read()
    moved = ClipFiles(
        video, tmp_path / "later.h5", 500_000, 800_000, events_offset_us=-51_000_000_000
    ).read()
    assert moved.digest() == same.digest()


def test_the_digest_tells_clips_apart(files):
    video, recording, _ = files
    one = ClipFiles(video, recording, start_us=300_000, stop_us=900_000).read()
    assert Clip(one.video, one.events[:-1]).digest() != one.digest()
    assert Clip(one.video.sample(2), one.events).digest() != one.digest()


def test_a_clip_may_have_one_stream_and_not_none(files):
    video, recording, events = files
    assert ClipFiles(events=recording).read().events.digest() == events.digest()
    assert ClipFiles(video=video).read(num_frames=4).events is None
    only = ClipFiles(events=recording, start_us=100_000).read()
    assert only.events.digest() == events.between(100_000, 10_000_000).digest()
    with pytest.raises(MediaError, match="give one"):
        ClipFiles().read()
    with pytest.raises(MediaError, match="a clip of nothing"):
        Clip()


def test_the_same_stream_alone_is_another_clip(files):
    video, recording, _ = files
    both = ClipFiles(video, recording).read()
    digests = {both.digest(), Clip(both.video).digest(), Clip(events=both.events).digest()}
    assert len(digests) == 3
