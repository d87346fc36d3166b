"""How many events a second one core renders. Prints a line of JSON last.

python -m benchmarks.rendering --num-events 20000000
"""

import argparse
import json
import time

import numpy as np

from headstart.media.events import Events, SensorSize
from headstart.media.rendering import render, voxel_grid
from headstart.media.slicing import slice_by_count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-events", type=int, default=20_000_000)
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--sensor", default="640x480")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    sensor = SensorSize.parse(options.sensor)
    rng = np.random.default_rng(0)
    events = Events.checked(
        rng.integers(0, sensor.width, options.num_events, dtype=np.uint16),
        rng.integers(0, sensor.height, options.num_events, dtype=np.uint16),
        np.arange(options.num_events),
        rng.integers(0, 2, options.num_events, dtype=np.uint8),
        sensor,
    )
    seconds = []
    for _ in range(options.repeats):
        started = time.perf_counter()
        for piece in slice_by_count(events, options.slices):
            render(piece)
        seconds.append(time.perf_counter() - started)
    few = events[: options.num_events // 20]
    started = time.perf_counter()
    voxel_grid(few, 5)
    voxel_s = time.perf_counter() - started
    print(
        json.dumps(
            {
                "num_events": options.num_events,
                "sensor": str(sensor),
                "slices": options.slices,
                "render_median_s": round(float(np.median(seconds)), 4),
                "render_events_per_s": round(options.num_events / float(np.median(seconds))),
                "render_best_events_per_s": round(options.num_events / min(seconds)),
                "voxel_grid_events_per_s": round(len(few) / voxel_s),
            }
        )
    )


if __name__ == "__main__":
    main()
