"""A person's own recordings as clips: a folder in DSEC's layout, or videos with events beside them.

DSEC: ``<sequence>/events/left/events.h5`` with ``<sequence>/images/timestamps.txt`` and
``<sequence>/images/left/rectified/*.png``. Otherwise each video of the folder is a recording, and
a file of events of the same name beside it (``drive.mp4``, ``drive.h5``) is what the event camera
saw, on the video's clock.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.errors import BenchError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.media.video import Video, stream_frames

CLIP_US = 1_000_000
WINDOW_US = 50_000  # of events, at the clip's end: models of events refuse long ones
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm")
EVENTS = (".h5", ".hdf5", ".npz", ".npy", ".raw", ".dat", ".aedat4", ".csv")
DSEC_EVENTS = "events/left/events.h5"
DSEC_SENSOR = SensorSize(640, 480)


def clips_in(
    folder: Path, max_clips: int, num_frames: int, sensor: SensorSize | None = None
) -> list[Clip]:
    """One-second clips in the order of recording, at most so many, read into memory."""
    found: list[Clip] = []
    for clip in _clips(folder, num_frames, sensor):
        found.append(clip)
        if len(found) == max_clips:
            break
    if not found:
        raise BenchError(
            f"{folder} holds no clip of a second: neither DSEC sequences ({DSEC_EVENTS} and"
            f" images/) nor videos ({', '.join(VIDEOS)})"
        )
    return found


def _clips(folder: Path, num_frames: int, sensor: SensorSize | None) -> Iterator[Clip]:
    sequences = sorted(path.parents[2] for path in folder.rglob(DSEC_EVENTS))
    for sequence in sequences:
        yield from _dsec_clips(sequence, num_frames)
    if sequences:
        return
    for video in sorted(path for path in folder.iterdir() if path.suffix.lower() in VIDEOS):
        yield from _video_clips(video, num_frames, sensor)


def _video_clips(path: Path, num_frames: int, sensor: SensorSize | None) -> Iterator[Clip]:
    events = next((f for end in EVENTS if (f := path.with_suffix(end)).exists()), None)
    duration_us = max(time_us for time_us, _ in stream_frames(path))
    for start_us in range(0, duration_us - CLIP_US + 1, CLIP_US):
        stop_us = start_us + CLIP_US
        video = Video.read(path, num_frames, start_us, stop_us)
        seen = None
        if events is not None:
            window = ClipFiles(
                events=events, start_us=stop_us - WINDOW_US, stop_us=stop_us, sensor=sensor
            )
            seen = window.read().events
        yield Clip(video, seen)


def _dsec_clips(sequence: Path, num_frames: int) -> Iterator[Clip]:
    pictures = sorted((sequence / "images" / "left" / "rectified").glob("*.png"))
    note = sequence / "images" / "timestamps.txt"
    if not pictures or not note.exists():
        raise BenchError(
            f"{sequence} has events but no images/timestamps.txt and images/left/rectified/*.png:"
            " unpack the sequence's images beside its events"
        )
    times_us = np.loadtxt(note, dtype=np.int64, ndmin=1)
    if len(times_us) != len(pictures):
        raise BenchError(
            f"{note} states {len(times_us)} times for {len(pictures)} pictures: unpack both again"
        )
    with open_recording(sequence / DSEC_EVENTS, sensor=DSEC_SENSOR) as recording:
        for start_us in range(int(times_us[0]), int(times_us[-1]) - CLIP_US + 1, CLIP_US):
            stop_us = start_us + CLIP_US
            inside = np.flatnonzero((times_us >= start_us) & (times_us < stop_us))
            if not len(inside):
                continue
            spread = np.linspace(0, len(inside) - 1, min(num_frames, len(inside))).astype(int)
            chosen = inside[spread]
            frames = np.stack([np.asarray(Image.open(pictures[i]).convert("RGB")) for i in chosen])
            seen: Events = recording.read(stop_us - WINDOW_US, stop_us)
            yield Clip(Video(frames, times_us[chosen]), seen)
