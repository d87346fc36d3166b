"""The drafts of one request, posted by several sources, and how the answer may go on by them.

A draft reaches the target only over a board. The board checks every id, so nothing but text is
ever verified; it knows nothing of where drafts come from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from headstart.errors import DraftingError
from headstart.speculation.draft import NOTHING, Draft

MAX_DRAFT_TOKENS = 512  # of one posted draft; what lies beyond is dropped unread
MAX_SOURCES = 16  # of one request; more is a mistake or an attack
MIN_RESYNC_TOKENS = 3  # a shorter repetition is chance more often than agreement
MAX_RESYNC_TOKENS = 16


@dataclass(frozen=True, slots=True)
class TextVocabulary:
    """The ids that may be drafted: those below ``num_text_ids`` that are not special.

    Placeholders of pictures and padding lie above the text or among the special ids. Leave the
    id that ends an answer out of ``special_ids`` where its end may be drafted too: it saves the
    last pass.
    """

    num_text_ids: int
    special_ids: frozenset[int] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.num_text_ids < 1:
            raise DraftingError(
                f"num_text_ids is {self.num_text_ids}: take the size of the target's tokenizer "
                "without its added tokens, for example 32000"
            )

    @classmethod
    def of(cls, num_text_ids: int, special_ids: Iterable[int] = ()) -> "TextVocabulary":
        """The same from any collection of special ids."""
        return cls(num_text_ids, frozenset(special_ids))

    def text_prefix(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens before the first one that is not text. Never raises, whatever they hold."""
        size, special = self.num_text_ids, self.special_ids
        # All of it is text nearly always, which is seen faster than where it ends.
        are_ids = bool(tokens) and set(map(type, tokens)) == {int}
        if are_ids and min(tokens) >= 0 and max(tokens) < size and special.isdisjoint(tokens):
            return tuple(tokens)
        for place, token in enumerate(tokens):
            # The exact type: True, 3.0 and numpy's integers are mistakes, not ids.
            if type(token) is not int or not 0 <= token < size or token in special:
                return tuple(tokens[:place])
        return tuple(tokens)

    def text_suffix(self, tokens: Sequence[int]) -> tuple[int, ...]:
        return self.text_prefix(tokens[::-1])[::-1]


class DraftBoard:
    """The newest draft of each source, for one request.

    Thread-safe: drafters post from their own threads while the engine asks. Neither call waits
    for more than the other's few microseconds, and neither raises on any draft.
    """

    def __init__(self, vocabulary: TextVocabulary) -> None:
        self._vocabulary = vocabulary
        self._drafts: dict[str, Draft] = {}
        self._lock = Lock()

    def text(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens before the first id that is not text. Every draft's pass through here."""
        return self._vocabulary.text_prefix(tokens[:MAX_DRAFT_TOKENS])

    def post(self, draft: Draft) -> None:
        """Replace this source's draft, cut off before the first id that is not text.

        The ids are checked here, before anything else is done with them.
        """
        tokens = self.text(draft.tokens)
        if type(draft.start) is not int or draft.start < 0:
            tokens = ()
        draft = Draft(tokens, draft.source, draft.made_at_s, draft.start)
        with self._lock:
            if draft.source in self._drafts or len(self._drafts) < MAX_SOURCES:
                self._drafts[draft.source] = draft

    def propose(
        self, confirmed: Sequence[int], max_tokens: int, order: Iterable[str] | None = None
    ) -> Draft:
        """How the answer goes on, by the first source in ``order`` that has a continuation.

        Without an order the newest draft comes first. A draft that the target contradicted is
        used again after a place in it where the last confirmed tokens occur. Changes nothing.
        """
        with self._lock:
            drafts = dict(self._drafts)
        if order is None:
            order = sorted(drafts, key=lambda source: drafts[source].made_at_s, reverse=True)
        for source in order:
            draft = drafts.get(source)
            if draft is None:
                continue
            place = place_after(draft, confirmed)
            if place is None:
                continue
            stop = place + max(0, max_tokens)
            if tokens := draft.tokens[place:stop]:
                return Draft(tokens, source, draft.made_at_s, len(confirmed))
        return NOTHING


def place_after(draft: Draft, confirmed: Sequence[int]) -> int | None:
    """Where in the draft the answer goes on; none where nothing in it is like what was said."""
    tokens, begun = draft.tokens, len(confirmed) - draft.start
    if begun < 0:
        return None  # it starts after a gap: nothing says how to get there
    if begun <= len(tokens) and tokens[:begun] == tuple(confirmed[draft.start :]):
        return begun
    return _resync(tokens, confirmed)


def _resync(tokens: tuple[int, ...], confirmed: Sequence[int]) -> int | None:
    """After the longest, then latest, occurrence in the draft of how ``confirmed`` ends."""
    if len(confirmed) < MIN_RESYNC_TOKENS:
        return None
    ending = tuple(confirmed[-MAX_RESYNC_TOKENS:])
    tail = ending[-MIN_RESYNC_TOKENS:]
    best_length, best = 0, None
    for stop in range(MIN_RESYNC_TOKENS, len(tokens)):
        if tokens[stop - 1] == tail[-1] and tokens[stop - MIN_RESYNC_TOKENS : stop] == tail:
            length = MIN_RESYNC_TOKENS
            most = min(stop, len(ending))
            while length < most and tokens[stop - length - 1] == ending[-length - 1]:
                length += 1
            if length >= best_length:
                best_length, best = length, stop
    return best
