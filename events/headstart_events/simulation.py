"""Simulates the events that an event camera would have recorded of a video.

A pixel reports an event each time the logarithm of its light has moved by a threshold since its
last event. Between frames the logarithm is taken to change linearly, which gives events their
times. Only a few frames are in memory at a time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
MIN_THRESHOLD = 0.01
NEVER_US = -(2**61)


@dataclass(frozen=True)
class SensorModel:
    """The parameters of the pixels. Light is 0 to 255; contrast is in natural logarithms.

    ``threshold_spread`` is the standard deviation of thresholds from pixel to pixel.
    ``linear_below``: under this light the response is linear, since in the dark the logarithm
    would mostly amplify the camera's noise. ``leak_rate_hz``: brighter events of a pixel without
    change. ``shot_noise_rate_hz``: random events of either polarity in the dark; in full light
    ``shot_noise_in_light`` times as many. A pixel gives no second event within
    ``refractory_us``.
    """

    threshold_on: float = 0.2
    threshold_off: float = 0.2
    threshold_spread: float = 0.03
    linear_below: float = 20.0
    refractory_us: int = 500
    leak_rate_hz: float = 0.1
    shot_noise_rate_hz: float = 0.1
    shot_noise_in_light: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(MIN_THRESHOLD <= mean < 10 for mean in (self.threshold_on, self.threshold_off)):
            raise MediaError(f"thresholds are {MIN_THRESHOLD} to 10; typical ones are 0.1 to 0.5")
        if not 1.0 < self.linear_below <= 255.0:
            raise MediaError(f"linear_below is {self.linear_below}; give a light of 1 to 255")
        rest = (
            self.threshold_spread,
            self.refractory_us,
            self.leak_rate_hz,
            self.shot_noise_rate_hz,
            self.shot_noise_in_light,
            self.seed,
        )
        if not all(0 <= value < 1e9 for value in rest):
            raise MediaError("spread, refractory time, rates and seed must be from 0 to 1e9")

    @classmethod
    def ideal(cls, threshold: float = 0.2) -> Self:
        """A sensor without noise, leak, spread or refractory time."""
        return cls(
            threshold_on=threshold,
            threshold_off=threshold,
            threshold_spread=0.0,
            refractory_us=0,
            leak_rate_hz=0.0,
            shot_noise_rate_hz=0.0,
        )


class Simulator:
    """Turns frames, given in order of time, into events. Not thread-safe."""

    def __init__(self, sensor: SensorSize, model: SensorModel | None = None) -> None:
        self.sensor = sensor
        self.model = model = model or SensorModel()
        shape = (sensor.height, sensor.width)
        self._random = np.random.default_rng(model.seed)
        self._threshold_on = self._thresholds(model.threshold_on, shape)
        self._threshold_off = self._thresholds(model.threshold_off, shape)
        # The change of each pixel's response since its last event.
        self._pending = np.zeros(shape)
        if model.leak_rate_hz:
            # Random starts, so that pixels do not all leak at the same time.
            self._pending = self._random.random(shape) * self._threshold_on
        self._last_us = np.full(sensor.height * sensor.width, NEVER_US, dtype=np.int64)
        self._response: NDArray[np.float64] | None = None
        self._time_us = 0

    def see(self, time_us: int, frame: NDArray[np.uint8]) -> Events:
        """The events between the previous frame and this one, uint8 RGB [height, width, 3]."""
        if frame.dtype != np.uint8 or frame.shape != (*self._pending.shape, 3):
            raise MediaError(
                f"a frame is {frame.dtype} {list(frame.shape)} and the sensor {self.sensor}; "
                "give uint8 RGB of the sensor's size"
            )
        return self.see_light(time_us, frame.astype(np.float32) @ LUMA)

    def see_light(self, time_us: int, light: NDArray[np.floating]) -> Events:
        """As `see`, for light of any precision, 0 to 255, [height, width]."""
        response = respond(light, self.model.linear_below)
        if response.shape != self._pending.shape or not np.all(np.isfinite(response)):
            raise MediaError(f"light must be finite and of the sensor's size, {self.sensor}")
        previous, self._response = self._response, response
        start_us, self._time_us = self._time_us, time_us
        if previous is None:
            return Events.empty(self.sensor)
        if time_us <= start_us:
            raise MediaError(f"a frame at {time_us} us after one at {start_us} us; sort the frames")
        pixels, t, p = self._crossings(response - previous, start_us, time_us)
        if self.model.shot_noise_rate_hz:
            noise = self._shot_noise(light, start_us, time_us)
            pixels, t, p = (
                np.concatenate(pair) for pair in zip((pixels, t, p), noise, strict=True)
            )
        order = np.lexsort((p, pixels, t))  # every tie is broken, so equal seeds give equal bytes
        pixels, t, p = pixels[order], t[order], p[order]
        if self.model.refractory_us:
            rested = self._rested(pixels, t)
            pixels, t, p = pixels[rested], t[rested], p[rested]
        y, x = np.divmod(pixels, self.sensor.width)
        return Events(x.astype(np.uint16), y.astype(np.uint16), t, p, self.sensor)

    def _thresholds(self, mean: float, shape: tuple[int, int]) -> NDArray[np.float64]:
        drawn = self._random.normal(mean, self.model.threshold_spread, shape)
        return np.maximum(drawn, MIN_THRESHOLD)

    def _crossings(
        self, change: NDArray[np.float64], start_us: int, stop_us: int
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.bool_]]:
        """The pixels, times and polarities at which the response crosses thresholds."""
        leak = self.model.leak_rate_hz * (stop_us - start_us) / 1e6
        before = self._pending
        after = before + change + leak * self._threshold_on
        brighter = after > 0
        step = np.where(brighter, self._threshold_on, -self._threshold_off)
        num_steps = np.floor(after / step).astype(np.int64)
        self._pending = after - num_steps * step
        counts = num_steps.reshape(-1)
        active = np.flatnonzero(counts)
        pixels = np.repeat(active, counts[active])
        # Within each pixel: the first threshold passed, the second, and so on.
        ends = np.cumsum(counts[active])
        ordinal = np.arange(1, len(pixels) + 1) - np.repeat(ends - counts[active], counts[active])
        level = ordinal * step.reshape(-1)[pixels]
        low, high = before.reshape(-1)[pixels], after.reshape(-1)[pixels]
        share = np.clip((level - low) / (high - low), 0.0, 1.0)
        t = start_us + np.floor(share * (stop_us - start_us)).astype(np.int64)
        return pixels, t, brighter.reshape(-1)[pixels]

    def _shot_noise(
        self, light: NDArray[np.floating], start_us: int, stop_us: int
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.bool_]]:
        share = 1.0 - (1.0 - self.model.shot_noise_in_light) * np.clip(light, 0, 255) / 255.0
        rate_hz = self.model.shot_noise_rate_hz * share.reshape(-1).astype(np.float64)
        cumulative = np.cumsum(rate_hz)
        num_events = self._random.poisson(cumulative[-1] * (stop_us - start_us) / 1e6)
        drawn = self._random.random(num_events) * cumulative[-1]
        pixels = np.minimum(np.searchsorted(cumulative, drawn), len(cumulative) - 1)
        t = self._random.integers(start_us, stop_us, num_events)
        return pixels, t, self._random.random(num_events) < 0.5

    def _rested(self, pixels: NDArray[np.intp], t: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which events, in order of time, come after their pixel's refractory time."""
        order = np.argsort(pixels, kind="stable")
        grouped = pixels[order]
        is_first = np.diff(grouped, prepend=-1) != 0
        starts = np.maximum.accumulate(np.where(is_first, np.arange(len(grouped)), 0))
        rank = np.arange(len(grouped)) - starts
        kept = np.zeros(len(t), dtype=np.bool_)
        # All pixels' first events, then all their second ones: few rounds, each vectorised.
        by_rank = np.argsort(rank, kind="stable")
        for group in np.split(order[by_rank], np.cumsum(np.bincount(rank))[:-1]):
            rested = t[group] - self._last_us[pixels[group]] >= self.model.refractory_us
            chosen = group[rested]
            kept[chosen] = True
            self._last_us[pixels[chosen]] = t[chosen]
        return kept


def respond(light: NDArray[np.floating], linear_below: float) -> NDArray[np.float64]:
    """The response of a pixel: the logarithm of light, and in the dark a line to the origin."""
    light = light.astype(np.float64)
    slope = np.log(linear_below) / linear_below
    return np.where(light < linear_below, light * slope, np.log(np.maximum(light, linear_below)))


def simulate(
    frames: Iterable[tuple[int, NDArray[np.uint8]]], model: SensorModel | None = None
) -> Iterator[Events]:
    """Simulate a video given as (time in us, RGB frame); yields a piece for each frame.

    The sensor has the frames' size. The first piece is empty, since nothing has changed yet.
    """
    simulator: Simulator | None = None
    for time_us, frame in frames:
        if simulator is None:
            simulator = Simulator(SensorSize(frame.shape[1], frame.shape[0]), model)
        yield simulator.see(time_us, frame)
