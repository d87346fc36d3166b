"""A workload of a user's own recordings: a folder in DSEC's layout, or videos and events.

DSEC: ``<sequence>/events/left/events.h5`` with ``<sequence>/images/timestamps.txt`` and
``<sequence>/images/left/rectified/*.png``. Otherwise each video of the folder is a recording, and
an event file of the same name (``drive.mp4``, ``drive.h5``) holds the events of that video, on the
video's clock.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.bench.workloads import Workload, rotating
from headstart.errors import BenchError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import SUFFIXES, open_recording
from headstart.media.video import Video, frame_times

DEFAULT_QUESTION = "What is happening in this scene?"
NUM_FRAMES = 8
CLIP_US = 1_000_000
WINDOW_US = 50_000  # the events at a clip's end: event models refuse long windows
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm")
DSEC_EVENTS = "events/left/events.h5"
DSEC_SENSOR = SensorSize(640, 480)


def folder_workloads(
    folder: Path,
    questions: Sequence[str],
    answers: int,
    max_tokens: int,
    sensor: SensorSize | None,
    num_frames: int = NUM_FRAMES,
) -> list[Workload]:
    """One stream of the folder's recordings, a clip a second, the same in every round."""
    clips = clips_in(folder, answers, num_frames, sensor)
    items = rotating(clips, list(questions) or [DEFAULT_QUESTION])
    words = f"{len(clips)} clips of a second from {folder.name}"
    return [Workload("folder", words, lambda number, stream: items, max_tokens)]


def clips_in(
    folder: Path, max_clips: int, num_frames: int, sensor: SensorSize | None = None
) -> list[Clip]:
    """Read the first ``max_clips`` clips of a second, in the order they were recorded."""
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
    events = next((f for end in SUFFIXES if (f := path.with_suffix(end)).exists()), None)
    duration_us = int(frame_times(path)[-1])
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
