"""Between the tokens of a drafter and those of a target that has another tokenizer.

They are translated through text, word by word: a word is drafted once the drafter has finished it,
and its ids never change afterwards. A draft that is translated badly is refused by the target, like
any that is wrong.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from headstart.speculation.board import MAX_DRAFT_TOKENS
from headstart.speculation.text_tokenizer import NOT_WHOLE, TextTokenizer, words_of

Ids = tuple[int, ...]

_MAX_CACHED_PLACES = 64  # answers under way at a time


@dataclass(frozen=True, slots=True)
class _Place:
    """How far the target has come in its answer."""

    text: str
    """What it said, without a character of which the last bytes are to come."""
    is_whole: bool
    """Whether there is no such character."""
    word_start: int
    """Where in the text the last word begins, which may go on."""
    word_ids: Ids
    """What the target said from there on."""


class Translation:
    """What the target said, for the drafter; what the drafter says, for the target.

    Equal arguments give equal results, whatever came before. Not thread-safe.
    """

    def __init__(self, target: TextTokenizer, drafter: TextTokenizer) -> None:
        self._target, self._drafter = target, drafter
        self._place = lru_cache(_MAX_CACHED_PLACES)(self._find_place)

    def heard(self, said: Ids) -> Ids | None:
        """The drafter's ids to go on from; none where it cannot say what the target ``said``.

        Spaces at the end are left out: the drafter's next word brings its own.
        """
        place = self._place(said)
        if place is None:
            return None
        text = _opened(place.text.removeprefix(" ").rstrip(" "), self._drafter.opening)
        if not text:
            return ()
        ids = self._drafter.ids(words_of(text))
        return ids if self._drafter.text(ids) == text else None

    def is_foreseen(self, said: Ids, spoken: Ids) -> bool:
        """Whether all that the target ``said`` is among what the drafter has ``spoken``."""
        place = self._place(said)
        return place is not None and self._text(place, said, spoken)[0].startswith(place.text)

    def draft(self, said: Ids, spoken: Ids) -> Ids | None:
        """The target's ids of how the answer goes on after ``said``, as the drafter has ``spoken``.

        None while there are none: the drafter's first word is not finished, or not the target's.
        """
        place = self._place(said)
        if place is None:
            return None
        text, is_ended = self._text(place, said, spoken)
        if not text.startswith(place.text):
            return None
        words = words_of(text[place.word_start :])
        if not is_ended:
            words = words[:-1]  # it may go on
        sayable = list(takewhile(self._target.can_say, words))
        tokens = self._after(place, sayable)
        if tokens is None:
            return None
        if is_ended and len(sayable) == len(words) and self._target.end_id is not None:
            tokens += (self._target.end_id,)
        return tokens[:MAX_DRAFT_TOKENS] or None

    def _after(self, place: _Place, words: list[str]) -> Ids | None:
        """The ids of words that begin with the target's last one, without what it said of it."""
        ids, num_said = self._target.ids(words), len(place.word_ids)
        if ids[:num_said] == place.word_ids:
            return ids[num_said:]
        if not place.is_whole:
            return None  # it began the next character in bytes that the drafter does not foresee
        # It spells the word in a way of its own. What follows is spelt for itself.
        rest = "".join(words)[len(place.text) - place.word_start :]
        return self._target.ids(words_of(rest)) if rest else ()

    def _text(self, place: _Place, said: Ids, spoken: Ids) -> tuple[str, bool]:
        """What the drafter has spoken, opened as the target does; and whether that is all."""
        ids = self._drafter.vocabulary.text_prefix(spoken)
        is_ended = len(ids) < len(spoken) and spoken[len(ids)] == self._drafter.end_id
        text = self._drafter.text(ids).removeprefix(" ")
        if not said:
            text = _opened(text, self._target.opening)
        elif place.text[:1] == " ":
            text = " " + text
        broken = text.find(NOT_WHOLE, len(place.text))
        return (text, is_ended) if broken < 0 else (text[:broken], False)

    def _find_place(self, said: Ids) -> _Place | None:
        if self._target.vocabulary.text_prefix(said) != said:
            return None
        heard = self._target.text(said)
        text = heard.rstrip(NOT_WHOLE)
        begun = self._last_word(said)
        word_start = min(len(self._target.text(said[:begun])), len(text))
        return _Place(text, text == heard, word_start, said[begun:])

    def _last_word(self, said: Ids) -> int:
        """Which of the target's ids begins its last word."""
        for number in range(len(said) - 1, 0, -1):
            if self._target.text(said[number : number + 1])[:1] == " ":
                return number
        return 0


def _opened(text: str, opening: str) -> str:
    """An answer's text from its first word on, as a model begins it."""
    return opening + text if text and not text[0].isspace() else text
