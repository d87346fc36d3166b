"""A quantity over time, linear between given times."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class Profile:
    """Values at increasing times; constant before the first and after the last."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def steady(cls, value: float) -> "Profile":
        """A constant."""
        return cls((0.0,), (value,))

    def at(self, time: float) -> float:
        """The value at a time."""
        after = bisect_right(self.times, time)
        if after == 0:
            return self.values[0]
        if after == len(self.times):
            return self.values[-1]
        start, stop = self.times[after - 1], self.times[after]
        share = (time - start) / (stop - start)
        return self.values[after - 1] + share * (self.values[after] - self.values[after - 1])

    def integral(self, time: float) -> float:
        """The integral from time zero; for a speed, the distance."""
        after = bisect_right(self.times, time)
        if after == 0:
            return self.values[0] * time
        start = self.times[after - 1]
        area = (self.values[after - 1] + self.at(time)) / 2 * (time - start)
        return self._areas[after - 1] + area

    @cached_property
    def _areas(self) -> tuple[float, ...]:
        areas = [self.values[0] * self.times[0]]
        points = zip(self.times, self.values, strict=True)
        for (start, low), (stop, high) in pairwise(points):
            areas.append(areas[-1] + (low + high) / 2 * (stop - start))
        return tuple(areas)
