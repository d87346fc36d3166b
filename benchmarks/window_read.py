"""How long reading a 50 ms window of a long recording takes, and how much memory.

python -m benchmarks.window_read --num-events 200000000 --file long.h5

Makes the recording (DSEC's layout, Blosc) if the file does not exist. Prints a line of JSON last.
Memory is the peak of this process and of the helper that calls libhdf5, since the file was opened.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headstart.media.events import Events, SensorSize
from headstart.media.readers.hdf5_client import CLIENT
from headstart.media.readers.opening import open_recording
from headstart.media.writers.writing import write_recording

SENSOR = SensorSize(640, 480)
OFFSET_US = 51_836_949_776
BLOCK = 1 << 20


def made_up(num_events: int, duration_us: int) -> Iterator[Events]:
    """Yield a long recording in blocks, which repeat the same pixels at later times."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, SENSOR.width, BLOCK).astype(np.uint16)
    y = rng.integers(0, SENSOR.height, BLOCK).astype(np.uint16)
    p = rng.integers(0, 2, BLOCK).astype(np.bool_)
    for start in range(0, num_events, BLOCK):
        count = min(BLOCK, num_events - start)
        t = OFFSET_US + (start + np.arange(count)) * duration_us // num_events
        yield Events(x[:count], y[:count], t, p[:count], SENSOR)


def peak_mib(process: str) -> float:
    """Peak resident memory of a process, from Linux's /proc."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--num-events", type=int, default=200_000_000)
    parser.add_argument("--duration-s", type=float, default=3600.0)
    parser.add_argument("--window-us", type=int, default=50_000)
    parser.add_argument("--windows", type=int, default=20)
    options = parser.parse_args()
    duration_us = int(options.duration_s * 1e6)
    if not options.file.exists():
        write_recording(options.file, made_up(options.num_events, duration_us), SENSOR)
        print(f"made {options.file}")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making it
    started = time.perf_counter()
    with open_recording(options.file) as recording:
        open_s = time.perf_counter() - started
        # The middle first, cold; then other windows, each in another part of the file.
        starts = [0.5, *np.linspace(0.02, 0.97, options.windows - 1).tolist()]
        seconds, counts = [], []
        for share in starts:
            start_us = OFFSET_US + int(share * duration_us)
            started = time.perf_counter()
            window = recording.read(start_us, start_us + options.window_us)
            seconds.append(time.perf_counter() - started)
            counts.append(len(window))
        helper = peak_mib(str(CLIENT._process.pid)) if CLIENT._process else 0.0
    print(
        json.dumps(
            {
                "num_events": recording.num_events,
                "file_mib": round(options.file.stat().st_size / 2**20, 1),
                "duration_s": options.duration_s,
                "window_us": options.window_us,
                "events_in_middle_window": counts[0],
                "open_ms": round(open_s * 1e3, 1),
                "middle_window_ms": round(seconds[0] * 1e3, 2),
                "median_window_ms": round(float(np.median(seconds)) * 1e3, 2),
                "worst_window_ms": round(max(seconds) * 1e3, 2),
                "peak_mib": round(peak_mib("self"), 1),
                "peak_helper_mib": round(helper, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
