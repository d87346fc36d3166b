"""Prophesee RAW, encodings EVT2 and EVT3, decoded with numpy a block at a time.

EVT2 has words of 32 bits and EVT3 of 16; the top 4 bits of a word are its type. Times come in
two parts, high bits now and then and low bits more often. Each part holds until the next word that
sets it, and the high part wraps around. Trigger and monitoring words are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart_events.readers.prophesee import PropheseeHeader
from headstart_events.recording import Columns, Opening, Recording

BLOCK_BYTES = 1 << 18


def open_raw(opening: Opening) -> Recording:
    """Open a RAW file; its header must say EVT2 or EVT3."""
    with opening.open() as file:
        header = PropheseeHeader.read(file)
    stated = header.values.get("format", header.values.get("evt", ""))
    match = re.match(r"(?:evt)?([23])(?:\.0)?(?:;|$)", stated.lower())
    if not match:
        raise MediaError(
            f"its header says its encoding is {stated or 'unknown'!r}, and EVT2 and EVT3 are read; "
            "convert it with the camera's own software"
        )
    return RawRecording(opening, header, Evt2Decoder if match[1] == "2" else Evt3Decoder)


class RawRecording(Recording):
    """A RAW file. It has no index, so every window is read from the start of the file."""

    def __init__(
        self,
        opening: Opening,
        header: PropheseeHeader,
        decoder: type[Evt2Decoder] | type[Evt3Decoder],
    ) -> None:
        self.opening, self.format = opening, f"Prophesee RAW, {decoder.name}"
        self.sensor = opening.resolve_sensor(header.sensor())
        self._header, self._decoder = header, decoder

    def columns(self) -> Iterator[Columns]:
        """Decode the file a block at a time."""
        decoder = self._decoder()
        t0_us = self._header.t0_us()
        with self.opening.open() as file:
            file.seek(self._header.num_bytes)
            while data := file.read(BLOCK_BYTES):
                whole = len(data) - len(data) % decoder.word.itemsize
                x, y, t, p = decoder.decode(np.frombuffer(data[:whole], dtype=decoder.word))
                yield x, y, t + t0_us, p


def hold(values: NDArray[Any], given: NDArray[np.bool_], before: int) -> NDArray[np.int64]:
    """Fill each place with the last given value at or before it, or with ``before``."""
    places = np.flatnonzero(given)
    lengths = np.diff(places, prepend=0, append=len(values))
    return np.repeat(np.concatenate([[before], values[places].astype(np.int64)]), lengths)


def unwrap(highs: NDArray[np.int64], previous: int, bits: int) -> NDArray[np.int64]:
    """Continue counters of ``bits`` bits past their wrap; ``previous`` came before the first.

    A fall of more than half the range is a wrap. A smaller fall is a step back and stays one.
    """
    span = 1 << bits
    steps = np.diff(highs, prepend=previous % span if previous >= 0 else highs[:1])
    wraps = np.cumsum(steps < -(span // 2))
    return highs + (wraps + max(previous, 0) // span) * span


class Evt2Decoder:
    """32-bit words: type 4, time 6, x 11, y 11; or type 4, time high 28."""

    name = "EVT2"
    word = np.dtype("<u4")

    def __init__(self) -> None:
        self._high = -1  # until the first high part; events before it have no time

    def decode(self, words: NDArray[np.uint32]) -> Columns:
        """Decode the events among the next ``words`` of the stream."""
        kind = words >> 28
        is_high = kind == 0x8
        highs = words.astype(np.int64) & 0x0FFF_FFFF
        if np.any(is_high):
            highs[is_high] = unwrap(highs[is_high], self._high, 28)
        held = hold(highs, is_high, self._high)
        if len(held):
            self._high = int(held[-1])
        is_event = (kind <= 1) & (held >= 0)
        chosen = words[is_event]
        t = (held[is_event] << 6) | ((chosen >> 22) & 0x3F)
        return (chosen >> 11) & 0x7FF, chosen & 0x7FF, t, chosen >> 28


class Evt3Decoder:
    """16-bit words that set y, time or base x, and words of one or up to twelve events."""

    name = "EVT3"
    word = np.dtype("<u2")

    def __init__(self) -> None:
        self._high = -1  # until the first high part; events before it have no time
        self._low = 0
        self._y = -1
        self._base = 0  # x of the next vector word, and its polarity in bit 11
        self._polarity = 0

    def decode(self, words: NDArray[np.uint16]) -> Columns:
        """Decode the events among the next ``words`` of the stream."""
        kind = words >> 12
        value = (words & 0x0FFF).astype(np.int64)
        t = self._times(kind, value)
        y = hold(value & 0x7FF, kind == 0x0, self._y)
        base, polarity = self._bases(kind, value)
        if len(words):
            self._y = int(y[-1])
        # Every word of events as its first x and a mask of which x follow.
        is_single, is_12, is_8 = kind == 0x2, kind == 0x4, kind == 0x5
        words_of_events = np.flatnonzero((is_single | is_12 | is_8) & (t >= 0) & (y >= 0))
        single, chosen = is_single[words_of_events], value[words_of_events]
        t, y = t[words_of_events], y[words_of_events]
        first_x = np.where(single, chosen & 0x7FF, base[words_of_events])
        on = np.where(single, chosen >> 11, polarity[words_of_events])
        if np.all(single):
            return first_x, y, t, on
        mask = np.where(single, 1, np.where(is_8[words_of_events], chosen & 0xFF, chosen))
        packed = mask.astype("<u2").view(np.uint8).reshape(-1, 2)
        rows, bits = np.nonzero(np.unpackbits(packed, axis=1, bitorder="little").view(np.bool_))
        return first_x[rows] + bits, y[rows], t[rows], on[rows]

    def _times(self, kind: NDArray[Any], value: NDArray[np.int64]) -> NDArray[np.int64]:
        is_high = kind == 0x8
        highs = value.copy()
        if np.any(is_high):
            highs[is_high] = unwrap(value[is_high], self._high, 12)
        high = hold(highs, is_high, self._high)
        # A new high part starts at low 0: the low part held until then belongs to the old one.
        changed = np.diff(high, prepend=self._high) != 0
        low = hold(np.where(changed, 0, value), (kind == 0x6) | changed, self._low)
        if len(high):
            self._high, self._low = int(high[-1]), int(low[-1])
        return np.where(high >= 0, (high << 12) | low, -1)

    def _bases(
        self, kind: NDArray[Any], value: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        is_base = kind == 0x3
        if not np.any((kind >= 0x3) & (kind <= 0x5)):  # no vectors here: nothing to follow
            return np.full(len(kind), self._base), np.full(len(kind), self._polarity)
        width = np.where(kind == 0x4, 12, np.where(kind == 0x5, 8, 0))
        passed = np.cumsum(width) - width
        # x of a vector word: the last base, and the widths of the vector words since.
        base = hold((value & 0x7FF) - passed, is_base, self._base) + passed
        polarity = hold(value >> 11, is_base, self._polarity)
        if len(value):
            self._base = int(base[-1] + width[-1])
            self._polarity = int(polarity[-1])
        return base, polarity
