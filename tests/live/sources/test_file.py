"""A video file as a camera: its times, its pace, and what happens to a reader that is slow."""

import pytest

from headstart.errors import MediaError, SourceError
from headstart.live.sources.folder import video_file
from headstart.media.video import Video
from rig.footage import is_increasing, nothing_left, number_of, numbered
from rig.waiting import wait_until


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """Twenty frames, ten a second."""
    path = tmp_path_factory.mktemp("footage") / "twenty.mp4"
    Video.from_frames(numbered(20), fps=10).write(path, fps=10)
    return path


def test_a_file_plays_at_its_own_pace(footage, paced):
    with nothing_left():
        source = video_file(footage, speed=2)
        arrivals = list(source.arrivals())
    assert [number_of(arrival.frame) for arrival in arrivals] == list(range(20))
    assert [arrival.time_us for arrival in arrivals] == [i * 100_000 for i in range(20)]
    assert all(arrival.events is None for arrival in arrivals)
    assert paced.waits_s == pytest.approx([0.0] + 19 * [0.05])  # each until its own time
    assert source.counts.frames == 20
    assert source.counts.dropped == 0


def test_of_frames_that_nobody_takes_the_oldest_go(footage):
    source = video_file(footage, speed=10)
    taken = []
    for arrival in source.arrivals():
        if not taken:
            wait_until(lambda: source.counts.frames == 20, "the file's end")
        taken.append(number_of(arrival.frame))
    assert taken[1:] == list(range(4, 20))  # 16 wait
    assert source.counts.frames == 20
    assert source.counts.dropped == 20 - len(taken)


def test_closing_ends_a_file_at_once(footage):
    source = video_file(footage, speed=0.01)
    with nothing_left():
        arrivals = source.arrivals()
        next(arrivals)
        source.close()  # the next frame is due after ten seconds, and its thread is gone before
        assert next(arrivals, None) is None


def test_a_reader_that_stops_leaves_nothing_behind(footage):
    with nothing_left():
        for _ in video_file(footage, speed=0.1).arrivals():
            break


def test_a_closed_source_gives_nothing(footage):
    source = video_file(footage)
    source.close()
    assert list(source.arrivals()) == []


def test_a_source_is_read_once(footage):
    source = video_file(footage, speed=100)
    assert is_increasing([arrival.time_us for arrival in source.arrivals()])
    with pytest.raises(SourceError, match="open it a second time"):
        list(source.arrivals())


def test_what_is_no_video_is_said_where_frames_are_asked_for(tmp_path):
    path = tmp_path / "letter.mp4"
    path.write_text("Dear camera")
    with nothing_left(), pytest.raises(MediaError, match="not a video"):
        list(video_file(path).arrivals())


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_a_speed_that_cannot_be_is_refused(footage, speed):
    with pytest.raises(SourceError, match="above 0"):
        video_file(footage, speed=speed)
