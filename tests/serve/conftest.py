"""Clips and models that the servers are asked about."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def clips(tmp_path_factory) -> Path:
    """A directory with street.mp4, street.npz, a darker dusk.mp4 and a large wide.mp4."""
    from headstart.lab.street import street_video
    from headstart.media.events import SensorSize
    from headstart.media.simulation import simulate
    from headstart.media.video import Video
    from headstart.media.writers.writing import write_recording

    directory = tmp_path_factory.mktemp("clips")
    street = street_video(num_frames=16, width=96, height=64)
    street.write(directory / "street.mp4")
    Video(street.frames // 3, street.times_us).write(directory / "dusk.mp4")
    street_video(num_frames=16, width=1280, height=720).write(directory / "wide.mp4")
    seen = zip(street.times_us.tolist(), street.frames, strict=True)
    write_recording(directory / "street.npz", simulate(seen), SensorSize(96, 64))
    return directory


@pytest.fixture(scope="session")
def tiny_drafter(tmp_path_factory) -> Path:
    from headstart.lab.tiny import TinyEventGpt

    directory = tmp_path_factory.mktemp("tiny-drafter") / "drafter"
    TinyEventGpt().save(directory)
    return directory
