"""Workloads of a user's own recordings, as `headstart_research.bench.clip_folder` reads them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from headstart.errors import BenchError
from headstart.media.clip import Clip
from headstart.media.events import SensorSize
from headstart.media.video import Video
from headstart_research.bench.clip_folder import folder_streams
from headstart_research.bench.workloads import Workload, rotating

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


def paced_workloads(
    recording: Path, questions: Sequence[str], answers: int, max_tokens: int, num_frames: int
) -> tuple[Workload, Workload]:
    """The same clips twice: each as a whole, and live, its frames spread evenly over its second.

    The whole clips have the same times, because some models read the times of their frames.
    """
    clips = [_paced(clip, num_frames) for clip in clips_in(recording, answers, num_frames)]
    items = rotating(clips, list(questions) or [DEFAULT_QUESTION])
    words = f"{len(clips)} clips of a second"
    whole = Workload("folder", words, lambda number, stream: items, max_tokens)
    live = replace(whole, name="live", words=f"{words}, live", frame_s=1 / num_frames)
    return whole, live


def _paced(clip: Clip, num_frames: int) -> Clip:
    if clip.video is None or len(clip.video) != num_frames:
        raise BenchError(
            f"a second of the recording has fewer than {num_frames} frames: give one with more, or"
            " lower frames with --set"
        )
    return Clip(Video.from_frames(clip.video.frames, fps=num_frames))


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
