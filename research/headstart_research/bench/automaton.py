"""Which sequences occur in a growing text: a suffix automaton, one state a class of endings."""

from collections.abc import Sequence


class SubstringIndex:
    """Every stretch of the sequences added so far, found in time linear in its length."""

    def __init__(self) -> None:
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._last = 0

    def num_known(self, tokens: Sequence[int]) -> int:
        """How many of the first ``tokens`` occur somewhere in a row."""
        state = 0
        for count, token in enumerate(tokens):
            following = self._next[state].get(token)
            if following is None:
                return count
            state = following
        return len(tokens)

    def add(self, tokens: Sequence[int]) -> None:
        """Index one more sequence; nothing is found across the border of two."""
        self._last = 0
        for token in tokens:
            self._last = self._extend(token)

    def _extend(self, token: int) -> int:
        """The usual online step, for many sequences: a transition may be there already."""
        last = self._last
        known = self._next[last].get(token)
        if known is not None:
            if self._length[known] == self._length[last] + 1:
                return known
            return self._split(last, token, known)
        state = self._new({}, self._length[last] + 1)
        while last >= 0 and token not in self._next[last]:
            self._next[last][token] = state
            last = self._link[last]
        if last < 0:
            self._link[state] = 0
        else:
            following = self._next[last][token]
            exact = self._length[following] == self._length[last] + 1
            self._link[state] = following if exact else self._split(last, token, following)
        return state

    def _split(self, last: int, token: int, following: int) -> int:
        clone = self._new(dict(self._next[following]), self._length[last] + 1)
        self._link[clone] = self._link[following]
        self._link[following] = clone
        while last >= 0 and self._next[last].get(token) == following:
            self._next[last][token] = clone
            last = self._link[last]
        return clone

    def _new(self, transitions: dict[int, int], length: int) -> int:
        self._next.append(transitions)
        self._link.append(-1)
        self._length.append(length)
        return len(self._next) - 1
