"""Shows events and video on one timeline in rerun, an optional dependency."""

from pathlib import Path
from typing import Any

from headstart.errors import MediaError
from headstart.media.events import Events
from headstart.media.video import stream_frames
from headstart_events.rendering import render, slice_by_time

FRAME_US = 20_000


def show(events: Events, video: Path | None, save: Path | None) -> None:
    """Open the viewer, or write to ``save`` what it would show."""
    try:
        import rerun
    except ImportError as error:
        raise MediaError(
            "viewing needs rerun, which is not installed: pip install 'headstart[view]'"
        ) from error
    rerun.init("headstart events", spawn=save is None)
    if save is not None:
        rerun.save(str(save))
    _log_events(rerun, events)
    if video is not None:
        for time_us, frame in stream_frames(video):
            rerun.set_time("time", duration=time_us / 1e6)
            rerun.log("camera", rerun.Image(frame).compress(jpeg_quality=80))


def _log_events(rerun: Any, events: Events) -> None:
    num_slices = max(1, -(-events.duration_us // FRAME_US))
    for piece in slice_by_time(events, num_slices):
        if len(piece):
            rerun.set_time("time", duration=int(piece.t[-1]) / 1e6)
            rerun.log("events", rerun.Image(render(piece)))
            rerun.log("rate", rerun.Scalars(len(piece) * 1e6 / FRAME_US))
