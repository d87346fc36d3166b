"""Recordings handed over as bytes: read without opening a file or starting a process."""

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.errors import MediaError
from headstart_events.readers.opening import open_recording
from headstart_events.writers.writing import write_recording
from tests.media.synthetic import SENSOR, random_events, save_like_eventgpt

for optional in ("h5py", "hdf5plugin", "lz4", "zstandard"):
    pytest.importorskip(optional)

FORMATS = (".npz", ".npy", ".h5", ".csv", ".raw", ".evt2.raw", ".dat", ".aedat4")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    events = random_events(20_000, start_us=1_000_000, duration_us=2_000_000)
    for suffix in FORMATS:
        if suffix == ".npy":
            save_like_eventgpt(folder / "events.npy", events)
        else:
            write_recording(folder / f"events{suffix}", [events], SENSOR)
    return folder


@pytest.mark.parametrize("hand_over", [bytes, memoryview, "mmap"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_content_is_read_as_its_file_is(recordings, suffix, hand_over):
    path = recordings / f"events{suffix}"
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    content = mapped if hand_over == "mmap" else hand_over(path.read_bytes())
    stated = SENSOR if suffix in (".npy", ".csv") else None
    with (
        open_recording(path, stated) as expected,
        open_recording(f"absent{suffix}", stated, content=content) as recording,
    ):
        assert recording.num_events == expected.num_events
        assert recording.first_us == expected.first_us
        for start_us in (0, 1_500_000, 1_900_000):
            window = recording.read(start_us, start_us + 50_000)
            assert window.digest() == expected.read(start_us, start_us + 50_000).digest()
        assert recording.read_all().digest() == expected.read_all().digest()


def test_hdf5_closed_twice_is_closed(recordings):
    content = (recordings / "events.h5").read_bytes()
    recording = open_recording("events.h5", content=content)
    recording.close()
    recording.close()


WITHOUT_FILES = """
import sys
from pathlib import Path

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.readers.opening import open_recording
from headstart_events.readers.opening import preload
from tests.media.hostile import crafted_files, valid_files

folder = Path(sys.argv[1])
files = valid_files(folder)
files += [(suffix, data) for _, suffix, data in crafted_files(folder, folder / "canary", 1 << 20)]
files = [(suffix, data) for suffix, data in files if suffix not in (".mp4", ".mkv")]
for module in [name for name in sys.modules if name.startswith("encodings.cp")]:
    del sys.modules[module]
preload()
closed = False

def watch(event, arguments):
    if closed and event.split(".")[0] in ("open", "subprocess", "os", "socket", "ctypes"):
        print(event, arguments[:1], flush=True)

sys.addaudithook(watch)
closed = True
num_read = 0
for suffix, data in files:
    try:
        with open_recording(f"it{suffix}", SensorSize(64, 48), 10**6, content=data) as recording:
            num_read += bool(len(recording.read_all()))
    except MediaError:
        pass
closed = False
print(num_read, "read of", len(files))
"""


def test_after_preloading_no_file_is_opened_whatever_is_read(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FILES, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *touched, last = done.stdout.splitlines()
    assert touched == []
    assert int(last.split()[0]) >= 15


def test_a_pickle_is_refused_where_pickles_are_not_allowed(recordings):
    content = (recordings / "events.npy").read_bytes()
    with pytest.raises(MediaError, match="pickled"):
        open_recording("events.npy", SENSOR, content=content, allow_pickle=False)
    for way in (b"'O'", b'"O"', b'"|O"', b"'=O'"):
        disguised = content.replace(b"'|O', ", (way + b",").ljust(6))
        assert disguised != content
        with pytest.raises(MediaError, match="pickled"):
            open_recording("events.npy", SENSOR, content=disguised, allow_pickle=False)
    table = (recordings / "events.npz").read_bytes()
    assert open_recording("events.npz", content=table, allow_pickle=False).num_events == 20_000
