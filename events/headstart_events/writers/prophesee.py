"""Writes Prophesee RAW (EVT2, EVT3) and DAT, encoded with numpy.

Times are written from the first event, whose time is ``t0`` in the header. In a long pause the high
part of an EVT time is written several times, so that a reader sees every wrap of it.
"""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize

MAX_RAW_SIDE = 2048
MAX_DAT_SIDE = 16_384
MAX_DAT_GAP_US = 2**31
MAX_EVT2_GAP_US = 2**33
MAX_EVT3_GAP_US = 24 * 3600 * 1_000_000
EVT3_STEP = 1024
"""The most that the high part grows between two words: a quarter of its range."""


def write_evt2(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    _check_side(sensor, MAX_RAW_SIDE, "RAW")
    t0_us, pieces = _from_first(blocks)
    with path.open("wb") as file:
        file.write(_raw_header("2", sensor, t0_us))
        high = -1
        for events, t, gap in pieces:
            _check_gap(gap, MAX_EVT2_GAP_US, "EVT2")
            highs = t >> 6
            words = np.empty((len(t), 2), dtype="<u4")
            words[:, 0] = 0x8 << 28 | (highs & 0x0FFF_FFFF)
            words[:, 1] = (
                events.p.astype(np.int64) << 28
                | (t & 0x3F) << 22
                | events.x.astype(np.int64) << 11
                | events.y
            )
            needed = np.ones(words.shape, dtype=bool)
            needed[:, 0] = np.diff(highs, prepend=high) != 0
            file.write(words[needed].tobytes())
            high = int(highs[-1])


def write_evt3(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    """Write RAW of 16-bit words, with one word for each event."""
    _check_side(sensor, MAX_RAW_SIDE, "RAW")
    t0_us, pieces = _from_first(blocks)
    with path.open("wb") as file:
        file.write(_raw_header("3", sensor, t0_us))
        high, row, low = -1, -1, -1
        for events, t, gap in pieces:
            _check_gap(gap, MAX_EVT3_GAP_US, "EVT3")
            highs, lows = t >> 12, t & 0xFFF
            climbs = np.diff(highs, prepend=high)
            words = np.empty((len(t), 4), dtype="<u2")
            words[:, 0] = 0x8 << 12 | (highs & 0xFFF)
            words[:, 1] = 0x6 << 12 | lows
            words[:, 2] = events.y
            words[:, 3] = 0x2 << 12 | events.p.astype(np.uint16) << np.uint16(11) | events.x
            needed = np.ones(words.shape, dtype=bool)
            needed[:, 0] = climbs != 0
            needed[:, 1] = needed[:, 0] | (np.diff(lows, prepend=low) != 0)
            needed[:, 2] = np.diff(events.y.astype(np.int64), prepend=row) != 0
            start = 0
            for leap in np.flatnonzero(climbs > EVT3_STEP):
                file.write(words[start:leap][needed[start:leap]].tobytes())
                steps = np.arange(highs[leap] - climbs[leap], highs[leap], EVT3_STEP)[1:]
                file.write((0x8 << 12 | (steps & 0xFFF)).astype("<u2").tobytes())
                start = int(leap)
            file.write(words[start:][needed[start:]].tobytes())
            high, row, low = int(highs[-1]), int(events.y[-1]), int(lows[-1])


def write_dat(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    _check_side(sensor, MAX_DAT_SIDE, "DAT")
    t0_us, pieces = _from_first(blocks)
    with path.open("wb") as file:
        file.write(_dat_header(sensor, t0_us))
        for events, t, gap in pieces:
            _check_gap(gap, MAX_DAT_GAP_US, "DAT")
            words = np.empty((len(t), 2), dtype="<u4")
            words[:, 0] = t & 0xFFFF_FFFF
            words[:, 1] = (
                events.p.astype(np.int64) << 28 | events.y.astype(np.int64) << 14 | events.x
            )
            file.write(words.tobytes())


def _from_first(
    blocks: Iterator[Events],
) -> tuple[int, Iterator[tuple[Events, NDArray[np.int64], Any]]]:
    """The first event's time, 0 without events; and each block that has some, with its times from
    there and its longest pause."""
    filled = (events for events in blocks if len(events))
    first = list(islice(filled, 1))
    t0_us = int(first[0].t[0]) if first else 0

    def pieces() -> Iterator[tuple[Events, NDArray[np.int64], Any]]:
        last = 0
        for events in chain(first, filled):
            t = events.t - t0_us
            yield events, t, np.diff(t, prepend=last).max()
            last = int(t[-1])

    return t0_us, pieces()


def _raw_header(version: str, sensor: SensorSize, t0_us: int) -> bytes:
    return (
        f"% evt {version}.0\n% format EVT{version};width={sensor.width};height={sensor.height}\n"
        f"% geometry {sensor}\n% t0 {t0_us}\n% end\n"
    ).encode()


def _dat_header(sensor: SensorSize, t0_us: int) -> bytes:
    lines = f"% Version 2\n% Width {sensor.width}\n% Height {sensor.height}\n% T0 {t0_us}\n"
    return lines.encode() + bytes([0x0C, 8])


def _check_side(sensor: SensorSize, limit: int, name: str) -> None:
    if max(sensor.width, sensor.height) > limit:
        raise MediaError(f"{name} holds sensors up to {limit} a side; write .npz or .h5 instead")


def _check_gap(gap: Any, limit_us: int, name: str) -> None:
    if gap >= limit_us:
        raise MediaError(
            f"{name} cannot hold a pause of {gap} us between events; write .npz or .h5 instead"
        )
