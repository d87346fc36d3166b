"""Sources by name: every kind is told apart, and what is none is told what to give."""

import pytest

from headstart.errors import HeadstartError, SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.opening import open_source
from headstart.media.video import Video
from headstart_events.live.events_beside import simulated
from rig.footage import nothing_left, numbered


def test_a_file_and_a_folder_are_told_apart(tmp_path):
    path = tmp_path / "a.mp4"
    Video.from_frames(numbered(3), fps=10).write(path, fps=10)
    assert len(list(open_source(str(path)).arrivals())) == 3
    waiting = open_source(str(tmp_path))
    waiting.close()
    assert list(waiting.arrivals()) == []


def test_events_are_put_beside(tmp_path):
    path = tmp_path / "a.mp4"
    Video.from_frames(numbered(3), fps=10).write(path, fps=10)
    source = simulated(open_source(str(path)))
    assert [arrival.events is not None for arrival in source.arrivals()] == [True] * 3
    assert source.name == str(path)


def test_a_drive_comes_from_the_lab():
    with nothing_left():
        for count, arrival in enumerate(open_source("drive:7").arrivals()):
            assert arrival.frame.shape == (168, 168, 3)
            if count == 2:
                break


def test_a_webcam_that_is_not_there_is_said():
    with nothing_left(), pytest.raises(SourceError, match="plugged in"):
        list(open_source("/dev/video63").arrivals())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.mp4", "no such file"),
        ("ftp://host/x", "rtsp://host/path"),
        ("rtsp://", "rtsp://host/path"),
        ("http://host:port/x", "cannot be read"),
        ("unknown:7", "no such file"),
        ("drive:north", "its seed"),
    ],
)
def test_what_is_no_source_is_told_what_to_give(name, said):
    with pytest.raises(HeadstartError, match=said):
        open_source(name)


def test_a_kind_that_is_not_installed_is_told_how_to(monkeypatch):
    monkeypatch.setattr("headstart.live.sources.opening.entry_points", lambda **_: [])
    with pytest.raises(SourceError, match=r"pip install \./lab"):
        open_source("drive:7")


def test_an_address_shows_no_password():
    address = Address.parse("rtsp://me:p%40ss@[::1]:8554/a/b?c=1")
    assert (address.user, address.password) == ("me", "p@ss")
    assert str(address) == "rtsp://[::1]:8554/a/b?c=1"
    assert (address.host, address.port, address.is_tls) == ("::1", 8554, False)
    assert address.place == "rtsp://[::1]:8554/a/b"  # nor what a query may hold
    assert Address.parse("https://host/x").port == 443
