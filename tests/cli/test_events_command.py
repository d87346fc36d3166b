import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from headstart.media.video import Video
from headstart_events.commands.events import app
from headstart_events.readers.opening import open_recording
from headstart_events.writers.writing import write_recording
from tests.media.synthetic import SENSOR, random_events, save_like_eventgpt


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "events.npz"
    write_recording(path, [random_events(20_000, duration_us=200_000)], SENSOR)
    return path


@pytest.fixture
def drive(tmp_path):
    path = tmp_path / "drive.mp4"
    frames = np.full((10, 48, 64, 3), 60, dtype=np.uint8)
    for index in range(10):
        frames[index, :, 4 * index : 4 * index + 12] = 200
    Video.from_frames(frames, fps=25).write(path)
    return path


def test_info_says_what_a_recording_holds(recording):
    text = run("info", recording)
    assert "numpy .npz" in text
    assert "20,000" in text
    assert "640x480" in text
    assert "x 0 to 639, y 0 to 479" in text
    assert "events/s" in text
    assert "brighter" in text
    assert "▇" in text


def as_structured_array(path, events):
    columns = [events.x, events.y, events.t, events.p]
    np.save(path, np.rec.fromarrays(columns, names="x,y,t,p"))


def as_csv(path, events):
    write_recording(path, [events], SENSOR)
    path.write_text(path.read_text().replace("x@640,y@480", "x,y"))


def as_dat(path, events):
    write_recording(path, [events], SENSOR)
    path.write_bytes(path.read_bytes().replace(b"% Width 640\n% Height 480\n", b""))


def as_dsec(path, events):
    h5py = pytest.importorskip("h5py")
    write_recording(path, [events], SENSOR)
    with h5py.File(path, "a") as file:
        del file.attrs["sensor_width"], file.attrs["sensor_height"]


@pytest.mark.parametrize(
    ("name", "write", "format_name"),
    [
        ("events.npy", save_like_eventgpt, "a pickled dictionary"),
        ("events.npy", as_structured_array, "a structured array"),
        ("events.csv", as_csv, "CSV"),
        ("events.dat", as_dat, "Prophesee DAT"),
        ("events.h5", as_dsec, "DSEC"),
    ],
)
def test_info_tells_what_it_can_of_a_file_that_does_not_state_its_sensor(
    tmp_path, name, write, format_name
):
    path, events = tmp_path / name, random_events(20_000, start_us=70, duration_us=200_000)
    events = events[(events.x >= 5) & (events.y < 400)]
    write(path, events)
    text = run("info", path)
    assert format_name in text
    assert f"{len(events):,}" in text
    assert f"{events.t[0]} to {events.t[-1]} us" in text
    assert f"{np.mean(events.p):.1%} brighter" in text
    assert "x 5 to 639, y 0 to 399" in text
    assert text.count("--sensor 640x480") == 1
    named = run("info", path, "--sensor", "640x480")
    assert "--sensor" not in named
    # What needs the size is still refused, and says the same.
    assert "--sensor 640x480" in run("render", path, tmp_path / "x.png", code=1)


def test_info_refuses_coordinates_outside_the_sensor_it_is_given(tmp_path):
    save_like_eventgpt(tmp_path / "events.npy", random_events(100))
    assert "the sensor is 64x48" in run("info", tmp_path / "events.npy", "--sensor=64x48", code=1)


def test_errors_are_one_line_and_exit_code_1(tmp_path):
    save_like_eventgpt(tmp_path / "events.npy", random_events(10))
    for arguments in (
        ("info", tmp_path / "absent.raw"),
        ("convert", tmp_path / "events.npy", tmp_path / "x.npz"),
        ("info", tmp_path / "events.npy", "--sensor", "big"),
        ("render", tmp_path / "events.npy", tmp_path / "x.gif", "--sensor", "640x480"),
        ("convert", tmp_path / "events.npy", tmp_path / "x.xyz", "--sensor", "640x480"),
        ("simulate", tmp_path / "absent.mp4", tmp_path / "x.npz"),
        ("simulate", tmp_path / "absent.mp4", tmp_path / "x.npz", "--set=threshold_on=0"),
    ):
        text = run(*arguments, code=1)
        assert text.startswith("error: ")
        assert text.count("\n") == 1


def test_render_paints_slices_side_by_side(recording, tmp_path):
    run("render", recording, tmp_path / "slices.png", "--set=slices=3")
    assert Image.open(tmp_path / "slices.png").size == (3 * 640 + 2 * 2, 480)
    run("render", recording, tmp_path / "window.png", "--clip=0:50000")
    run("render", recording, tmp_path / "none.png", "--clip=1000000000:", code=1)


def test_render_plays_a_recording_at_its_own_speed(recording, tmp_path):
    run("render", recording, tmp_path / "events.mp4", "--set=fps=50")
    video = Video.read(tmp_path / "events.mp4")
    assert video.frames.shape == (10, 480, 640, 3)
    assert video.times_us[-1] == 180_000


def test_simulate_then_render_beside_the_video(drive, tmp_path):
    text = run("simulate", drive, tmp_path / "drive.h5", "--set=seed=7")
    assert "10 frames at 64x48" in text
    with open_recording(tmp_path / "drive.h5") as simulated:
        assert len(simulated.read_all()) > 500
    run("render", tmp_path / "drive.h5", tmp_path / "sheet.png", "--video", drive)
    assert Image.open(tmp_path / "sheet.png").width > 1000


def test_simulate_scales_to_the_sensor_asked_for(drive, tmp_path):
    run("simulate", drive, tmp_path / "drive.npz", "--sensor", "32x24")
    with open_recording(tmp_path / "drive.npz") as simulated:
        assert str(simulated.sensor) == "32x24"


def test_convert_keeps_every_event(recording, tmp_path):
    original = open_recording(recording).read_all()
    run("convert", recording, tmp_path / "events.raw")
    run("convert", tmp_path / "events.raw", tmp_path / "events.csv")
    run("convert", tmp_path / "events.csv", tmp_path / "back.npz")
    assert open_recording(tmp_path / "back.npz").read_all().digest() == original.digest()
    run("convert", recording, tmp_path / "part.npz", "--clip=50000:60000")
    part = open_recording(tmp_path / "part.npz").read_all()
    assert part.digest() == original.between(50_000, 60_000).digest()


def test_view_without_rerun_names_the_install(recording, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert "pip install 'headstart[view]'" in run("view", recording, code=1)


def test_view_writes_both_streams_for_rerun(drive, tmp_path):
    pytest.importorskip("rerun")
    run("simulate", drive, tmp_path / "drive.npz")
    run("view", tmp_path / "drive.npz", "--video", drive, "--save", tmp_path / "drive.rrd")
    assert (tmp_path / "drive.rrd").stat().st_size > 1000
