"""Where windows begin and end on a camera's clock, before any frame is decoded.

It is the grid of `headstart.live.windows`, whose first window begins with the first frame.
"""

from dataclasses import dataclass

from headstart.live.windows import Windows


@dataclass(frozen=True)
class WindowGrid:
    """The windows of a camera whose first frame has this time."""

    origin_us: int
    length_us: int
    step_us: int

    @classmethod
    def of(cls, windows: Windows, origin_us: int) -> "WindowGrid":
        """The grid of these windows."""
        return cls(origin_us, round(windows.seconds * 1e6), round(windows.step_s * 1e6))

    def newest(self, time_us: int) -> int:
        """The number of the newest window that has begun by then."""
        return (time_us - self.origin_us) // self.step_us

    def next_start_us(self, time_us: int) -> int:
        """When the first window begins that this time does not fall into."""
        return self.origin_us + (self.newest(time_us) + 1) * self.step_us

    def older_stop_us(self, time_us: int) -> int:
        """When the last of the older windows ends, those that this time does not fall into.

        A frame before it belongs to one of them, too.
        """
        oldest = (time_us - self.origin_us - self.length_us) // self.step_us + 1
        if oldest <= 0:
            return self.origin_us
        return self.origin_us + (oldest - 1) * self.step_us + self.length_us
