"""A window out of a long recording costs the window's memory, not the recording's."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart.media.events import Events
from headstart_events.writers.writing import write_recording
from tests.media.synthetic import SENSOR

NUM_EVENTS, DURATION_US = 5_000_000, 3_600_000_000
READ = f"""
import json, sys
from pathlib import Path
from headstart_events.readers.hdf5_client import CLIENT
from headstart_events.readers.opening import open_recording

def peak_mib(process):
    status = Path(f"/proc/{{process}}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

with open_recording(sys.argv[1]) as recording:
    start_us = recording.first_us + {DURATION_US} // 2
    num_read = len(recording.read(start_us, start_us + 50_000))
    print(json.dumps([num_read, peak_mib("self"), peak_mib(CLIENT._process.pid)]))
"""


def test_a_window_out_of_a_long_recording_takes_little_memory(tmp_path, rng):
    pytest.importorskip("hdf5plugin")
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from Linux's /proc")
    written = tmp_path / "long.h5"
    x, y = rng.integers(0, SENSOR.width, NUM_EVENTS), rng.integers(0, SENSOR.height, NUM_EVENTS)
    t = np.arange(NUM_EVENTS) * DURATION_US // NUM_EVENTS
    p = rng.integers(0, 2, NUM_EVENTS)
    write_recording(written, iter([Events.checked(x, y, t, p, SENSOR)]), SENSOR)
    # In a process of its own: this one's peak is that of making the recording.
    told = subprocess.run(
        [sys.executable, "-c", READ, str(written)], capture_output=True, text=True, check=True
    )
    num_read, own_mib, helper_mib = json.loads(told.stdout)
    assert 60 < num_read < 80
    assert own_mib + helper_mib < 150  # reading all of it takes 255
