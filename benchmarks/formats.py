"""How many events a second each format is written and read at. Prints a line of JSON last.

python -m benchmarks.formats --num-events 2000000
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.media.writers.writing import WRITERS, write_recording

PIECE = 200_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-events", type=int, default=2_000_000)
    options = parser.parse_args()
    num_events = options.num_events
    rng = np.random.default_rng(0)
    events = Events.checked(
        rng.integers(0, 640, num_events),
        rng.integers(0, 480, num_events),
        np.sort(rng.integers(0, num_events, num_events)),
        rng.integers(0, 2, num_events),
        SensorSize(640, 480),
    )
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in WRITERS:
            path = Path(folder) / f"recording{suffix}"
            started = time.perf_counter()
            pieces = (events[i : i + PIECE] for i in range(0, num_events, PIECE))
            write_recording(path, pieces, events.sensor)
            written = time.perf_counter()
            with open_recording(path) as recording:
                same = recording.read_all().digest() == events.digest()
            read = time.perf_counter()
            figures[suffix] = {
                "write_events_per_s": round(num_events / (written - started)),
                "read_events_per_s": round(num_events / (read - written)),
                "bytes_per_event": round(path.stat().st_size / num_events, 2),
                "same": same,
            }
            print(suffix, figures[suffix])
    print(json.dumps({"num_events": num_events, "formats": figures}))


if __name__ == "__main__":
    main()
