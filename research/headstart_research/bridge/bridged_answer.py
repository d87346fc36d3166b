"""How a bridge drafts one answer.

Memory drafts for the bridge. A copy from memory is read in one go, and followed as far as the
bridge agrees, or disagrees without conviction; where it is sure of another word it says that word,
and memory looks again from there. So a draft takes a few readings, not one for each token.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headstart.drafters.memory import Memory
from headstart.speculation.draft import Match
from headstart.speculation.drafter import DraftRequest, Features
from headstart_research.bridge.context import (
    NO_TOKEN,
    EarlierAnswer,
    fitted,
    match_kind,
    read_context,
)
from headstart_research.bridge.vocabulary import ANSWER

if TYPE_CHECKING:
    from headstart_research.bridge.bridge import Bridge
    from headstart_research.bridge.network import Reading

SURE = 0.6
"""A chance of being right from which on a bridge's word goes before memory's."""
MIN_CHANCE = 0.02
"""Of all words of a draft being right: a draft that is less likely to be goes no further."""
COPY_TOKENS = 7
"""Of memory's copy, read at a time: what is read beyond a disagreement is read in vain."""


class BridgedAnswer:
    """One answer, and how much of it the network has read. Not thread-safe."""

    def __init__(
        self, bridge: "Bridge", request: DraftRequest, history: Sequence[EarlierAnswer]
    ) -> None:
        self.request = request
        self._bridge, self._network = bridge, bridge.network
        self._history = history
        self._answer_mark = bridge.vocabulary.mark(ANSWER)
        self._end_ids = {int(bridge.vocabulary.target_ids[own]) for own in bridge.config.end_ids}
        self._seen: dict[str, Features] = {}
        self._has_looked = False
        self._reading: Reading | None = None
        self._start = 0
        self._said: list[int] = []  # tokens of the answer that were read after its mark
        self._words: list[int] = []  # the own ids guessed after the mark, and after each of them
        self._chances: list[float] = []

    def open(self) -> "Reading":
        """What was read, which is all before the answer at least, beside all that was seen."""
        if self._reading is None:
            request, bridge = self.request, self._bridge
            context = read_context(
                bridge.config, bridge.vocabulary, self._history, request.question, request.prompt
            )
            self._reading = self._network.read_context(context.own_ids, context.followed_by)
            self._start = self._reading.length
            self._has_looked = False
        if not self._has_looked:
            # What was read of the answer was read without the newest features.
            self._keep(self._reading, 0, with_mark=False)
            known = self._bridge.config.features
            seen = {f.name: fitted(f, self._seen[f.name]) for f in known if f.name in self._seen}
            self._network.look(self._reading, seen)
            self._has_looked = True
        return self._reading

    def close(self) -> None:
        """Give up the room of what was read."""
        self._reading = None
        self._said, self._words, self._chances = [], [], []

    def see(self, features: Mapping[str, Features]) -> None:
        for feature in self._bridge.config.features:
            tokens = features.get(feature.name)
            if tokens is None or feature.name in self._seen:
                continue
            if len(tokens) and tokens.shape[1] == feature.size:
                self._seen[feature.name] = tokens
                self._has_looked = False

    def draft(self, memory: Memory, confirmed: Sequence[int], max_tokens: int) -> Match:
        """How the answer may go on, and by how many tokens memory found its part of it."""
        # There is room for so many in a sequence; longer answers are left to others.
        most = self._bridge.config.max_answer_tokens - 1
        max_tokens = min(max_tokens, most - len(confirmed))
        if max_tokens < 1:
            return Match((), 0)
        known, reading = list(confirmed), self.open()
        target_ids = self._bridge.vocabulary.target_ids
        self._keep(reading, _num_common(self._said, known), with_mark=True)
        chance = 1.0
        copy = self._copied(memory, known)
        match = first_match = copy.match
        while (left := len(confirmed) + max_tokens - len(known)) and chance >= MIN_CHANCE:
            if not copy:
                copy = self._copied(memory, known)
                match = copy.match
            num_read = min(COPY_TOKENS, left - 1, len(copy))
            # One more than is read: it is what memory suggests after the last.
            ahead = copy[: num_read + 1]
            self._read(memory, reading, known, ahead, num_read, match)
            for token in ahead if num_read < len(ahead) else [*ahead, None]:
                place = len(known)
                word, sure = self._words[place], self._chances[place]
                guess = int(target_ids[word])
                follows = token is not None and (token == guess or sure < SURE)
                known.append(token if follows and token is not None else guess)
                chance *= sure if known[-1] == guess else max(1.0 - sure, 1e-3)
                if known[-1] in self._end_ids or len(known) - len(confirmed) >= max_tokens:
                    return Match(known[len(confirmed) :], first_match)
                if not follows or chance < MIN_CHANCE:
                    break
            match += len(ahead)
            copy = Match(copy[len(ahead) :], match) if follows else Match((), 0)
            self._keep(reading, _num_common(self._said, known), with_mark=True)
        return Match(known[len(confirmed) :], first_match)

    def _copied(self, memory: Memory, known: Sequence[int]) -> Match:
        """What memory would say next, and by how many tokens it found that."""
        most = self._bridge.config.max_answer_tokens - len(known)
        found = memory.propose(self.request.id, known, most)
        return found if isinstance(found, Match) else Match(found, 0)

    def _keep(self, reading: "Reading", num_said: int, *, with_mark: bool) -> None:
        """Forget what was read beyond so many tokens of the answer."""
        num_guesses = min(num_said + 1, len(self._words)) if with_mark else 0
        del self._said[num_said:], self._words[num_guesses:], self._chances[num_guesses:]
        reading.cut(self._start + num_guesses)

    def _read(
        self,
        memory: Memory,
        reading: "Reading",
        known: list[int],
        ahead: list[int],
        num_ahead: int,
        match: int,
    ) -> None:
        """Read what is not read of ``known``, then so many tokens of memory's copy ``ahead``."""
        read = len(self._words)  # the mark counts as one
        num_known = len(known)
        followed = [*known, *ahead]
        tokens = followed[: num_known + num_ahead]
        own = list(self._bridge.vocabulary.own(tokens[max(0, read - 1) :]))
        if not read:
            own.insert(0, self._answer_mark)
        if not own:
            return
        suggested, matches = [], []
        for place in range(read, read + len(own)):  # so many tokens of the answer are before it
            if place < num_known:
                found = memory.propose(self.request.id, tokens[:place], 1)
                token = found[0] if found else NO_TOKEN
                length = found.match if isinstance(found, Match) else 0
            else:
                token = followed[place] if place < len(followed) else NO_TOKEN
                length = match + place - num_known
            suggested.append(token)
            matches.append(match_kind(length) if token != NO_TOKEN else 0)
        words = self._bridge.vocabulary.own(suggested)
        words[words >= len(self._bridge.vocabulary)] = NO_TOKEN
        guesses = self._network.read_answer(reading, own, words, matches)
        self._said = tokens
        self._words += guesses.own_ids.tolist()
        self._chances += guesses.chances.tolist()


def _num_common(read: Sequence[int], known: Sequence[int]) -> int:
    for place, (one, other) in enumerate(zip(read, known, strict=False)):
        if one != other:
            return place
    return min(len(read), len(known))
