"""How long each source takes to draft, lately. The engine waits for it before a step."""

FADE = 0.9  # of what is known, with each further draft
OUTLIER = 4.0  # times the usual: an interruption, not the source


class AskingTimes:
    """The mean of each source, in seconds; old drafts fade. Not thread-safe.

    Openings are apart: before an answer's first token a source may have to read what it knows of
    the stream.
    """

    def __init__(self) -> None:
        self._mean_s: dict[tuple[str, bool], float] = {}

    def note(self, source: str, is_opening: bool, seconds: float) -> None:
        """A source took so long over a draft."""
        kind = source, is_opening
        mean_s = self._mean_s.get(kind)
        if mean_s is None:
            self._mean_s[kind] = seconds
        else:
            bounded_s = min(seconds, OUTLIER * mean_s)
            self._mean_s[kind] = FADE * mean_s + (1.0 - FADE) * bounded_s

    def seconds(self, source: str, is_opening: bool) -> float:
        """What the next draft will take; 0 where none like it was ever timed."""
        return self._mean_s.get((source, is_opening), 0.0)
