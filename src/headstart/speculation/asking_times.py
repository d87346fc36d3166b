"""How long each source takes to draft, lately. The engine waits for it before a step."""

FADE = 0.9  # of what is known, with each further draft
OUTLIER = 4.0  # times the usual: an interruption, not the source


class AskingTimes:
    """The mean of each source, in seconds; old drafts fade. Not thread-safe."""

    def __init__(self) -> None:
        self._mean_s: dict[str, float] = {}

    def note(self, source: str, seconds: float) -> None:
        """A source took so long over a draft."""
        mean_s = self._mean_s.get(source)
        if mean_s is None:
            self._mean_s[source] = seconds
        else:
            bounded_s = min(seconds, OUTLIER * mean_s)
            self._mean_s[source] = FADE * mean_s + (1.0 - FADE) * bounded_s

    def seconds(self, source: str) -> float:
        """What the next draft will take; 0 where none was ever timed."""
        return self._mean_s.get(source, 0.0)
