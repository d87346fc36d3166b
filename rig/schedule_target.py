"""A target that is a function: what it says next follows from the tokens before."""

from collections.abc import Iterable, Sequence
from string import ascii_letters, digits
from typing import NamedTuple

FIRST_WORD, VOCABULARY, END = 3, 64, 2
LETTERS = (ascii_letters + digits)[: VOCABULARY - FIRST_WORD]
"""How its words are written."""


class Mind(NamedTuple):
    """What the target knows after some tokens: all of them, the last three, and how many."""

    everything: int = 0
    recent: tuple[int, ...] = ()
    length: int = 0

    def after(self, token: int) -> "Mind":
        return Mind(hash((self.everything, token)), (*self.recent[-2:], token), self.length + 1)

    def wishes(self) -> tuple[int, int]:
        """The likeliest token and the next likeliest.

        Mostly the last words decide, so that what was said elsewhere is often right here; now and
        then everything does, and now and then the answer wants to end.
        """
        dice = self.everything % 1009
        if dice % 43 == 0:
            return END, _word(self.everything)
        usual = _word(hash(self.recent))
        rare = _word(self.everything // 1009)
        return (rare, usual) if dice % 7 == 0 else (usual, rare)


def _word(number: int) -> int:
    return FIRST_WORD + number % (VOCABULARY - FIRST_WORD)


def mind_of(tokens: Iterable[int]) -> Mind:
    mind = Mind()
    for token in tokens:
        mind = mind.after(token)
    return mind


def likely_answer(prompt: Sequence[int], num_tokens: int) -> list[int]:
    """What is said without limits of any kind, and past the wish to end."""
    mind, said = mind_of(prompt), list[int]()
    for _ in range(num_tokens):
        said.append(mind.wishes()[0])
        mind = mind.after(said[-1])
    return said
