"""Events made up for tests: dense enough to collide on pixels, with pauses a clock can wrap in."""

import numpy as np

from headstart.media.events import Events, SensorSize

SENSOR = SensorSize(640, 480)


def random_events(
    num_events: int,
    seed: int = 0,
    sensor: SensorSize = SENSOR,
    start_us: int = 0,
    duration_us: int = 50_000,
    pauses_us: tuple[int, ...] = (),
) -> Events:
    rng = np.random.default_rng(seed)
    t = start_us + np.sort(rng.integers(0, duration_us, num_events))
    for index, pause in enumerate(pauses_us, start=1):
        t[index * num_events // (len(pauses_us) + 1) :] += pause
    return Events.checked(
        rng.integers(0, sensor.width, num_events),
        rng.integers(0, sensor.height, num_events),
        t,
        rng.integers(0, 2, num_events),
        sensor,
    )


def save_like_eventgpt(path, events: Events, t_dtype=np.int64) -> None:
    columns = {"x": events.x, "y": events.y, "t": events.t.astype(t_dtype), "p": events.p}
    np.save(path, np.array(columns, dtype=object), allow_pickle=True)
