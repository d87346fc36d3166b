"""A quantity over time that runs evenly between given moments."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class Profile:
    """Values at increasing times; before the first and after the last it is steady."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def steady(cls, value: float) -> "Profile":
        """Always the same."""
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
        """The area from time zero; of a speed, the way."""
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
