"""``headstart events``: inspect, render, simulate, convert and view event recordings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from headstart.cli.options import ClipTimes, Sensor, clip_times
from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors
from headstart.errors import MediaError, UnknownSensorError
from headstart.media.events import MAX_SIDE, MAX_TIME_US, Events, SensorSize
from headstart.media.video import count_frames, stream_frames, write_frames
from headstart_events.commands.picture import sheet, show, side_by_side
from headstart_events.readers.dsec import RectifyMap
from headstart_events.readers.opening import open_recording
from headstart_events.recording import Recording
from headstart_events.rendering import render, slice_by_count, slice_by_time
from headstart_events.simulation import SensorModel, simulate
from headstart_events.summary import Summary
from headstart_events.writers.writing import write_recording

app = typer.Typer(
    help="Inspect, render, simulate, convert and view event recordings.",
    no_args_is_help=True,
    add_completion=False,
)

DEFAULTS = SensorModel()
LARGEST_SENSOR = SensorSize(MAX_SIDE, MAX_SIDE)
BARS = " ▁▂▃▄▅▆▇█"

Source = Annotated[Path, typer.Argument(help="The recording of events.", show_default=False)]

OFFSET = "What to add to event times to get the video's."


@dataclass(frozen=True)
class RenderSettings(CommandSettings):
    """What a recording is cut into."""

    slices: int = setting(5, "Slices of a .png, side by side.")
    by_time: bool = setting(False, "Slices of equal time, not of equal number.")
    fps: float = setting(25.0, "Frames a second of a .mp4, at real speed.")
    events_offset_us: int = setting(0, OFFSET)


@dataclass(frozen=True)
class ConvertSettings(CommandSettings):
    """What is mended on the way."""

    sort: bool = setting(False, "Sort events that are out of time order.")
    rectify_map: Path | None = setting(None, "DSEC's rectify_map.h5: undo the lens.", exists=True)


@dataclass(frozen=True)
class SimulateSettings(CommandSettings):
    """The camera that is simulated."""

    threshold_on: float = setting(DEFAULTS.threshold_on, "Log contrast of a brighter event.")
    threshold_off: float = setting(DEFAULTS.threshold_off, "Log contrast of a darker event.")
    threshold_spread: float = setting(
        DEFAULTS.threshold_spread, "Spread of thresholds from pixel to pixel."
    )
    refractory_us: int = setting(DEFAULTS.refractory_us, "A pixel's rest after an event.")
    leak_rate_hz: float = setting(DEFAULTS.leak_rate_hz, "Events a second of a pixel at rest.")
    shot_noise_rate_hz: float = setting(
        DEFAULTS.shot_noise_rate_hz, "Random events a second of a pixel in the dark."
    )
    seed: int = setting(DEFAULTS.seed, "Another seed, other noise.")


@app.command()
@report_errors
def info(source: Source, sensor: Sensor = None) -> None:
    """Print a recording's format, sensor, duration, event rate and polarity."""
    try:
        recording = _open(source, sensor)
        size = str(recording.sensor)
    except UnknownSensorError:
        # Counting needs no size, so every coordinate that fits the columns is let through.
        recording = open_recording(source, LARGEST_SENSOR)
        size = "not stated in the file; other commands need it, as --sensor 640x480"
    with recording:
        summary = Summary.of(_tracked(recording.blocks(), recording.num_events, "events"))
    table = Table.grid(padding=(0, 2))
    table.add_row("file", str(source))
    table.add_row("format", recording.format)
    table.add_row("sensor", size)
    table.add_row("events", f"{summary.num_events:,}")
    if summary.num_events:
        brighter = summary.num_brighter / summary.num_events
        rates = summary.rates_hz(48)
        table.add_row("duration", f"{summary.duration_us / 1e6:,.6f} s")
        table.add_row("times", f"{summary.first_us} to {summary.last_us} us")
        table.add_row("rate", f"{summary.rate_hz:,.0f} events/s, at most {rates.max():,.0f}")
        table.add_row("polarity", f"{brighter:.1%} brighter, {1 - brighter:.1%} darker")
        (left, right), (top, bottom) = summary.x_range, summary.y_range
        table.add_row("coordinates", f"x {left} to {right}, y {top} to {bottom}")
        table.add_row("over time", _sparkline(rates))
    Console().print(table)


@app.command(name="render")
@report_errors
def render_command(
    source: Source,
    output: Annotated[Path, typer.Argument(help="A .png or .mp4 to write.", show_default=False)],
    sensor: Sensor = None,
    clip: ClipTimes = None,
    video: Annotated[
        Path | None, typer.Option(help="Make the .png a sheet: this video's frame, events, rate.")
    ] = None,
    given: Annotated[list[str] | None, SET, RenderSettings] = None,
) -> None:
    """Render a window of a recording as EventGPT sees it."""
    settings = RenderSettings.read(given)
    with _open(source, sensor) as recording:
        window = _read_window(recording, clip)
        if output.suffix.lower() == ".mp4":
            write_frames(output, _render_in_time(window, settings.fps), settings.fps)
        elif output.suffix.lower() != ".png":
            raise MediaError(f"{output} is neither .png nor .mp4; choose one of them")
        elif video is None:
            cut = slice_by_time if settings.by_time else slice_by_count
            _save(side_by_side(cut(window, settings.slices)), output)
        else:
            blocks = _tracked(recording.blocks(), recording.num_events, "events")
            offset_us = settings.events_offset_us
            summary = Summary.of(block.shifted(offset_us) for block in blocks)
            _save(_sheet(video, window.shifted(offset_us), summary), output)
    typer.echo(f"{output}: {len(window):,} events")


@app.command(name="simulate")
@report_errors
def simulate_command(
    video: Annotated[Path, typer.Argument(help="Any RGB video.", show_default=False)],
    output: Annotated[Path, typer.Argument(help="The recording to write.", show_default=False)],
    sensor: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Scale frames to this size first, as 640x480."),
    ] = None,
    given: Annotated[list[str] | None, SET, SimulateSettings] = None,
) -> None:
    """Simulate the events that an event camera would have recorded of a video."""
    model = SensorModel(**vars(SimulateSettings.read(given)))
    size = SensorSize.parse(sensor) if sensor else None
    num_frames = count_frames(video)
    pieces = simulate(_scaled(stream_frames(video), size), model)
    tracked = _tracked(pieces, num_frames, "frames", per_piece=True)
    seen_by = next(tracked).sensor  # of no events: nothing has changed yet
    num_events = write_recording(output, tracked, seen_by)
    typer.echo(f"{output}: {num_events:,} events of {num_frames} frames at {seen_by}")


@app.command()
@report_errors
def convert(
    source: Source,
    output: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    sensor: Sensor = None,
    clip: ClipTimes = None,
    given: Annotated[list[str] | None, SET, ConvertSettings] = None,
) -> None:
    """Write a recording, or a window of it, in the format that the output's suffix names."""
    settings = ConvertSettings.read(given)
    rectify_map = settings.rectify_map
    undo = RectifyMap.read(rectify_map).apply if rectify_map else _unchanged
    with _open(source, sensor, settings.sort) as recording:
        if clip is None:
            blocks = _tracked(recording.blocks(), recording.num_events, "events")
        else:
            blocks = iter([_read_window(recording, clip)])
        num_events = write_recording(output, map(undo, blocks), recording.sensor)
    typer.echo(f"{output}: {num_events:,} events")


@app.command()
@report_errors
def view(
    source: Source,
    video: Annotated[Path | None, typer.Option(help="A video of the same scene.")] = None,
    sensor: Sensor = None,
    clip: ClipTimes = None,
    events_offset_us: Annotated[int, typer.Option(metavar="N", help=OFFSET)] = 0,
    save: Annotated[Path | None, typer.Option(help="Write a .rrd instead of a window.")] = None,
) -> None:
    """Show events, and a video of the same scene, on one timeline (needs rerun)."""
    with _open(source, sensor) as recording:
        window = _read_window(recording, clip)
    show(window.shifted(events_offset_us), video, save)


def _open(source: Path, sensor: str | None, sort: bool = False) -> Recording:
    return open_recording(source, SensorSize.parse(sensor) if sensor else None, sort=sort)


def _read_window(recording: Recording, clip: str | None) -> Events:
    start_us, stop_us = clip_times(clip)
    if start_us is None and stop_us is None:
        window = recording.read_all()
    else:
        window = recording.read(
            -MAX_TIME_US if start_us is None else start_us,
            MAX_TIME_US if stop_us is None else stop_us,
        )
    if not len(window):
        raise MediaError(
            f"{recording.opening.path} has no events there; "
            "see its times with: headstart events info"
        )
    return window


def _unchanged(events: Events) -> Events:
    return events


def _render_in_time(events: Events, fps: float) -> Iterator[NDArray[np.uint8]]:
    if not 0 < fps <= 10_000:
        raise MediaError(f"{fps} frames a second were asked for; give 1 to 10000")
    num_slices = max(1, round(events.duration_us / 1e6 * fps))
    for piece in slice_by_time(events, num_slices):
        yield render(piece)


def _sheet(video: Path, events: Events, summary: Summary) -> Image.Image:
    """The sheet with the last frame of the events' window."""
    frame, frame_us = None, 0
    for time_us, candidate in stream_frames(video):
        if frame is not None and time_us > events.t[-1] + 1:
            break
        frame, frame_us = candidate, time_us
    if frame is None:
        raise MediaError(f"{video} has no frames; choose another video")
    return sheet(frame, frame_us, events, summary, f"{video.name} and its events")


def _save(picture: Image.Image, output: Path) -> None:
    try:
        picture.save(output)
    except OSError as error:
        raise MediaError(f"cannot write {output}: {error}; choose a writable path") from error


def _scaled(
    frames: Iterable[tuple[int, NDArray[np.uint8]]], size: SensorSize | None
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    for time_us, frame in frames:
        if size is None or frame.shape[:2] == (size.height, size.width):
            yield time_us, frame
        else:
            image = Image.fromarray(frame)
            small = image.resize((size.width, size.height), Image.Resampling.BOX)
            yield time_us, np.asarray(small)


def _tracked(
    pieces: Iterable[Events], total: int | None, what: str, per_piece: bool = False
) -> Iterator[Events]:
    """Yield pieces, with a progress bar on standard error that disappears at the end."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for piece in pieces:
            yield piece
            progress.advance(task, 1 if per_piece else len(piece))


def _sparkline(rates: NDArray[np.float64]) -> str:
    heights = np.ceil(rates / max(float(rates.max()), 1e-9) * (len(BARS) - 1)).astype(int)
    return "".join(BARS[height] for height in heights)
