"""Events for people: slices side by side, a sheet of frame, events and rate, and rerun's viewer."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from headstart.errors import MediaError
from headstart.media.events import Events
from headstart.media.video import stream_frames
from headstart_events.rendering import BRIGHTER, DARKER, render, slice_by_time
from headstart_events.summary import Summary

INK, GREY, PAPER, RULE = (28, 28, 30), (110, 110, 116), (255, 255, 255), (225, 225, 228)
LINE, FILL, MARK = (54, 84, 134), (214, 224, 240), (214, 120, 0)
MARGIN, GAP, PANEL_WIDTH, PLOT_HEIGHT = 36, 24, 720, 190
FRAME_US = 20_000
"""In the viewer."""


def side_by_side(slices: Sequence[Events]) -> Image.Image:
    """Draw slices as EventGPT sees them, from left to right with grey lines between them."""
    pictures = [render(piece) for piece in slices]
    line = np.full((pictures[0].shape[0], 2, 3), 160, dtype=np.uint8)
    row = [part for picture in pictures for part in (picture, line)][:-1]
    return Image.fromarray(np.concatenate(row, axis=1))


def sheet(
    frame: NDArray[np.uint8], frame_us: int, events: Events, summary: Summary, title: str
) -> Image.Image:
    """Draw a frame, the events before it, and the rate of the recording with their time marked."""
    left, right = _fit(Image.fromarray(frame)), _fit(Image.fromarray(render(events)))
    width = 2 * MARGIN + 2 * PANEL_WIDTH + GAP
    second = MARGIN + PANEL_WIDTH + GAP
    panel_top = 116
    plot_top = panel_top + max(left.height, right.height) + 66
    page = Image.new("RGB", (width, plot_top + PLOT_HEIGHT + 62), PAPER)
    draw = ImageDraw.Draw(page)
    draw.text((MARGIN, 24), title, fill=INK, font=_font(28))
    draw.text((MARGIN, 82), f"Camera frame at {frame_us / 1e6:.2f} s", fill=INK, font=_font(20))
    caption = f"{len(events):,} events in the {events.duration_us / 1000:.0f} ms before it"
    draw.text((second, 82), caption, fill=INK, font=_font(20))
    _legend(draw, second + PANEL_WIDTH, 82)
    for image, x in ((left, MARGIN), (right, second)):
        page.paste(image, (x, panel_top))
        corner = (x + image.width - 1, panel_top + image.height - 1)
        draw.rectangle((x, panel_top, *corner), outline=(190, 190, 190))
    heading = "Events a second over the whole recording, in millions"
    draw.text((MARGIN, plot_top - 40), heading, fill=INK, font=_font(20))
    shown = (int(events.t[0]), int(events.t[-1])) if len(events) else (frame_us, frame_us)
    box = (MARGIN + 46, plot_top, width - MARGIN, plot_top + PLOT_HEIGHT)
    _plot(draw, summary, box, shown)
    return page


def _legend(draw: ImageDraw.ImageDraw, right: int, y: int) -> None:
    x = float(right)
    for colour, word in ((DARKER, "darker"), (BRIGHTER, "brighter")):
        x -= draw.textlength(word, font=_font(20))
        draw.text((x, y), word, fill=INK, font=_font(20))
        draw.rectangle((x - 24, y + 5, x - 8, y + 21), fill=colour)
        x -= 44


def _plot(
    draw: ImageDraw.ImageDraw,
    summary: Summary,
    box: tuple[int, int, int, int],
    shown: tuple[int, int],
) -> None:
    left, top, right, bottom = box
    rates = summary.rates_hz(240) / 1e6
    peak = _round_up(float(rates.max(initial=0.0)))
    start, duration = summary.first_us, max(summary.duration_us, 1)

    def across(time_us: float) -> float:
        return left + (time_us - start) / duration * (right - left)

    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (bottom - top)
        draw.line((left, y, right, y), fill=RULE)
        label = f"{peak * share:g}"
        length = draw.textlength(label, font=_font(16))
        draw.text((left - 10 - length, y - 10), label, fill=GREY, font=_font(16))
    curve = [
        (left + (index + 0.5) / len(rates) * (right - left), bottom - rate / peak * (bottom - top))
        for index, rate in enumerate(rates)
    ]
    if len(curve) > 1:
        draw.polygon([(curve[0][0], bottom), *curve, (curve[-1][0], bottom)], fill=FILL)
        draw.line(curve, fill=LINE, width=2)
    a, b = across(shown[0]), across(shown[1])
    draw.rectangle((a, top, max(b, a + 3), bottom), fill=MARK)
    note = "shown above"
    length = draw.textlength(note, font=_font(16))
    place = b + 10 if b + 10 + length < right else a - 10 - length
    draw.text((place, top - 24), note, fill=MARK, font=_font(16))
    draw.line((left, bottom, right, bottom), fill=INK)
    step = _round_up(duration / 12)
    for tick in np.arange(np.ceil(start / step), np.floor((start + duration) / step) + 1) * step:
        x = across(tick)
        draw.line((x, bottom, x, bottom + 6), fill=INK)
        label = f"{tick / 1e6:g}"
        length = draw.textlength(label, font=_font(16))
        draw.text((x - length / 2, bottom + 10), label, fill=GREY, font=_font(16))
    length = draw.textlength("seconds", font=_font(16))
    draw.text((right - length, bottom + 32), "seconds", fill=GREY, font=_font(16))


def _fit(image: Image.Image) -> Image.Image:
    height = round(image.height * PANEL_WIDTH / image.width)
    return image.resize((PANEL_WIDTH, height), Image.Resampling.LANCZOS)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _round_up(value: float) -> float:
    """The smallest of 1, 2, 4, 5 times a power of ten that is not below ``value``."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 4, 5) if step * power >= value), 10 * power)


def show(events: Events, video: Path | None, save: Path | None) -> None:
    """Show events and video on one timeline in rerun, or write to ``save`` what it would show."""
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
