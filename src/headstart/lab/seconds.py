"""Seconds of a drive as files, as a camera would leave them: a video, and its events beside it."""

from pathlib import Path

from headstart.errors import LabError
from headstart.lab.world.drive import LabClip
from headstart.media.video import Video
from headstart.media.writers.writing import write_recording


def write_second(video_path: Path, second: LabClip) -> None:
    """The video, and its events in a file of the same name; both clocks begin with the second.

    The events go on after the last frame, to the second's end.
    """
    video, events = second.clip.video, second.clip.events
    if video is None or events is None:
        raise LabError("this second was not seen by both cameras: take one of `Drive.clip`")
    start_us = int(video.times_us[0])
    Video(video.frames, video.times_us - start_us).write(video_path)
    own_clock = [events.shifted(-start_us)]
    write_recording(video_path.with_suffix(".npz"), own_clock, events.sensor)
