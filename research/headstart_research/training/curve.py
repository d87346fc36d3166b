"""The loss over the steps as a picture, drawn with pillow."""

from collections.abc import Sequence
from math import exp, log
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

SIZE = (960, 540)
MARGIN = 60
_INK, _GRID, _FAINT, _TAUGHT, _HELD_OUT = "#333333", "#e4e4e4", "#c5d5ea", "#2a62ac", "#c4521f"


def draw_curve(
    path: Path, title: str, losses: Sequence[float], held_out: Sequence[tuple[int, float]]
) -> None:
    """Losses of every step, their mean over a few, and the held-out loss, on a log scale."""
    values = [*losses, *(loss for _, loss in held_out)] or [1.0]
    low, high = log(max(min(values), 1e-4)), log(max(*values, 1e-3))
    high = max(high, low + 0.1)
    width, height = SIZE
    right, bottom = width - MARGIN // 2, height - MARGIN

    def point(step: float, loss: float) -> tuple[float, float]:
        across = step / max(1, len(losses))
        up = (log(max(loss, 1e-4)) - low) / (high - low)
        return MARGIN + across * (right - MARGIN), bottom - up * (bottom - MARGIN)

    picture = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(16)
    for mark in range(6):
        loss = exp(low + (high - low) * mark / 5)
        _, y = point(0, loss)
        draw.line([(MARGIN, y), (right, y)], fill=_GRID)
        draw.text((8, y - 9), f"{loss:.3g}", fill=_INK, font=font)
        step = len(losses) * mark // 5
        draw.text((point(step, 1)[0] - 12, bottom + 8), str(step), fill=_INK, font=font)
    _line(draw, [point(step + 1, loss) for step, loss in enumerate(losses)], _FAINT, 1)
    _line(draw, [point(step + 1, loss) for step, loss in enumerate(_smooth(losses))], _TAUGHT, 2)
    _line(draw, [point(step, loss) for step, loss in held_out], _HELD_OUT, 2)
    for step, loss in held_out:
        x, y = point(step, loss)
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=_HELD_OUT)
    draw.text((MARGIN, 14), title, fill=_INK, font=font)
    draw.text((width - 300, 14), "taught", fill=_TAUGHT, font=font)
    draw.text((width - 220, 14), "held out", fill=_HELD_OUT, font=font)
    draw.text((width // 2 - 20, height - 26), "step", fill=_INK, font=font)
    picture.save(path)


def _line(
    draw: ImageDraw.ImageDraw, points: list[tuple[float, float]], colour: str, width: int
) -> None:
    if len(points) > 1:
        draw.line(points, fill=colour, width=width)


def _smooth(losses: Sequence[float], reach: int = 6) -> list[float]:
    """The mean of each loss and its neighbours on both sides, so that the curve is not delayed."""
    around = [losses[max(0, step - reach) : step + reach + 1] for step in range(len(losses))]
    return [sum(some) / len(some) for some in around]
