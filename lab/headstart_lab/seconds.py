"""Writes a second of a drive as a camera would: a video file, and an events file beside it."""

from pathlib import Path

from headstart.media.video import Video
from headstart_events.writers.writing import write_recording
from headstart_lab.errors import LabError
from headstart_lab.world.drive import LabClip


def write_second(video_path: Path, second: LabClip) -> None:
    """Write the video, and the events into an .npz file of the same name.

    Both clocks start with the second. The events continue after the last frame, to the second's
    end.
    """
    video, events = second.clip.video, second.clip.events
    if video is None or events is None:
        raise LabError("this second lacks frames or events: take one from `Drive.clip`")
    start_us = int(video.times_us[0])
    Video(video.frames, video.times_us - start_us).write(video_path)
    own_clock = [events.shifted(-start_us)]
    write_recording(video_path.with_suffix(".npz"), own_clock, events.sensor)
