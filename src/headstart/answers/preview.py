"""Words shown before they are certain: previewed, then confirmed or retracted.

A reader keeps two texts, the certain one and the one after it that may still change:

    Preview    adds to the changing text
    Retracted  empties the changing text
    Confirmed  adds to the certain text, in place of as much of the changing one

At the end the certain text is the answer, and the changing one is empty.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """Drafted words that follow those shown so far. The target has not said them yet."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The target's own words. They are never taken back."""

    text: str


@dataclass(frozen=True, slots=True)
class Retracted:
    """All previewed words not confirmed yet. The target, or a newer draft, says others."""

    text: str


Shown = Preview | Confirmed | Retracted


class PreviewText:
    """Turns drafts and confirmed text, in whatever order they come, into what a reader is shown.

    It compares text, not tokens: where two tokens spell the same words nothing is taken back.
    """

    def __init__(self) -> None:
        self.confirmed = ""
        self._shown = ""
        self._source = ""

    @property
    def expected(self) -> str:
        """All that is shown: the certain text and the changing one after it."""
        return self.confirmed + self._shown

    def draft(self, text: str, source: str) -> list[Shown]:
        """A source expects the whole answer to begin with ``text``.

        Only the source that is shown may replace what is shown; others may only continue it.
        """
        if not text.startswith(self.confirmed):
            return []  # the target has said otherwise
        ahead = text[len(self.confirmed) :]
        if self._shown.startswith(ahead):
            return []
        told: list[Shown] = []
        if not ahead.startswith(self._shown):
            if source != self._source:
                return []
            told = self._take_back()
        self._source = source
        told.append(Preview(ahead[len(self._shown) :], source))
        self._shown = ahead
        return told

    def confirm(self, text: str) -> list[Shown]:
        """The target has said ``text``, after what it said before."""
        if not text:
            return []
        told: list[Shown] = []
        if self._shown.startswith(text):
            self._shown = self._shown[len(text) :]
        elif text.startswith(self._shown):
            self._shown = ""
        else:
            told = self._take_back()
        self.confirmed += text
        return [*told, Confirmed(text)]

    def end(self) -> list[Shown]:
        return self._take_back()

    def _take_back(self) -> list[Shown]:
        text, self._shown = self._shown, ""
        return [Retracted(text)] if text else []
