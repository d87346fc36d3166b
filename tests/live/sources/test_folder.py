"""A folder that is written to, as cameras and recorders do it."""

import os
import threading
import time
from itertools import islice

import PIL.Image
import pytest

from headstart.errors import SourceError
from headstart.live.sources.folder import folder
from headstart.media.video import Video
from rig.footage import is_increasing, nothing_left, number_of, numbered

pytestmark = pytest.mark.slow


@pytest.fixture
def writing():
    """Runs a writer beside the test and waits for it."""
    threads = []

    def start(write):
        threads.append(threading.Thread(target=write, name="test server"))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def write_picture(path, number):
    """As a careful camera does it: under another name first."""
    other = path.with_suffix(".part")
    PIL.Image.fromarray(numbered(number + 1)[number]).save(other, "PNG")
    other.rename(path)


def test_pictures_come_in_the_order_of_their_names(tmp_path, writing):
    write_picture(tmp_path / "000.png", 30)  # there before: not shown

    def write():
        for number in range(5):
            write_picture(tmp_path / f"{number + 1:03}.png", number)
            (tmp_path / f"{number + 1:03}.txt").write_text("a note beside it")
            time.sleep(0.05)  # plays: a camera that writes one after the other

    with nothing_left():
        source = folder(tmp_path)
        writing(write)
        arrivals = list(islice(source.arrivals(), 5))
    assert [number_of(arrival.frame) for arrival in arrivals] == [0, 1, 2, 3, 4]
    assert is_increasing([arrival.time_us for arrival in arrivals])


def test_a_file_counts_when_it_is_whole(tmp_path, writing):
    """Written in three parts over 1.2 s: read before its end, it would be no video."""
    whole = tmp_path / "elsewhere"
    whole.mkdir()
    Video.from_frames(numbered(10), fps=25).write(whole / "a.mp4", fps=25)
    content = (whole / "a.mp4").read_bytes()

    def write():
        with (tmp_path / "a.mp4").open("wb", buffering=0) as file:
            for part in range(3):
                file.write(content[part * len(content) // 3 : (part + 1) * len(content) // 3])
                time.sleep(0.4)  # plays: a camera that writes in parts

    with nothing_left():
        source = folder(tmp_path)
        writing(write)
        arrivals = list(islice(source.arrivals(), 10))
    assert [number_of(arrival.frame) for arrival in arrivals] == list(range(10))
    assert source.counts.unreadable == 0


def test_segments_follow_each_other_on_one_clock(tmp_path, writing):
    segments = []
    for index in range(3):
        path = tmp_path / f"whole{index}"
        path.mkdir()
        frames = numbered(30)[index * 10 : (index + 1) * 10]
        Video.from_frames(frames, fps=25).write(path / "x.ts", fps=25)
        segments.append(path / "x.ts")

    def write():
        for index, segment in enumerate(segments):
            os.rename(segment, tmp_path / f"{index}.ts")  # noqa: PTH104 (one call, at once)
            time.sleep(0.4)  # plays: the length of a segment

    with nothing_left():
        source = folder(tmp_path)
        writing(write)
        arrivals = list(islice(source.arrivals(), 30))
    assert [number_of(arrival.frame) for arrival in arrivals] == list(range(30))
    times = [arrival.time_us for arrival in arrivals]
    assert is_increasing(times)
    assert times[-1] - times[0] >= 9 * 40_000


def test_a_file_that_cannot_be_read_is_counted_and_passed_over(tmp_path, writing):
    def write():
        (tmp_path / "1.png").write_text("no picture")
        (tmp_path / "2.mp4").write_text("no video")
        write_picture(tmp_path / "3.png", 7)

    with nothing_left():
        source = folder(tmp_path)
        writing(write)
        (arrival,) = islice(source.arrivals(), 1)
    assert number_of(arrival.frame) == 7
    assert source.counts.unreadable == 2


def test_closing_ends_an_empty_folder(tmp_path):
    source = folder(tmp_path)
    with nothing_left():
        closing = threading.Timer(0.3, source.close)
        closing.start()
        assert list(source.arrivals()) == []
        closing.join()


def test_what_is_no_folder_is_said(tmp_path):
    with pytest.raises(SourceError, match="no folder"):
        folder(tmp_path / "nowhere")
