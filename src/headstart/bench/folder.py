"""A workload of a user's own recordings, as `headstart.media.clip_folder` reads them."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from headstart.bench.workloads import Workload, rotating
from headstart.errors import BenchError
from headstart.media.clip import Clip
from headstart.media.clip_folder import folder_streams
from headstart.media.events import SensorSize

DEFAULT_QUESTION = "What is happening in this scene?"
NUM_FRAMES = 8


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
    all_clips = (
        clip for stream in folder_streams(folder, sensor) for _, clip in stream.clips(num_frames)
    )
    found = list(islice(all_clips, max_clips))
    if not found:
        raise BenchError(f"{folder} holds no clip of a second: give longer recordings")
    return found
