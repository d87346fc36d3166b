"""How long to wait before a camera is connected to again."""

import random

FIRST_S = 0.5
LONGEST_S = 30.0
HELD_S = 10.0


class BackOff:
    """Half a second, doubling up to half a minute; shorter by chance, up to the half of it.

    Chance keeps many cameras, lost at once, from coming back at once.
    """

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def after(self, held_s: float) -> float:
        """The pause after a connection that held so long; one that held well starts anew."""
        if held_s >= HELD_S:
            self._next_s = FIRST_S
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_S)
        return pause_s * random.uniform(0.5, 1.0)
