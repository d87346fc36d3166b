"""Which token ids may be drafted: those of the target's text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headstart.errors import DraftingError


@dataclass(frozen=True, slots=True)
class TextVocabulary:
    """The ids below ``num_text_ids`` that are not special.

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
