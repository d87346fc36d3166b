"""Whether two models have the same tokens, and how one drafts for the other then: by token ids."""

from collections.abc import Mapping
from dataclasses import dataclass

from headstart.errors import DraftingError


def is_same_tokenizer(target: Mapping[str, int], drafter: Mapping[str, int]) -> bool:
    """Whether every piece of text the drafter may say has the target's id.

    The target may know more pieces; those are never drafted. Raises where a model has no pieces.
    """
    for name, pieces in (("target", target), ("drafter", drafter)):
        if not pieces:
            raise DraftingError(
                f"The {name}'s tokenizer has no pieces of text, so no word can be drafted. Check"
                " its tokenizer files, or leave the drafter out."
            )
    return all(target.get(piece) == id for piece, id in drafter.items())


@dataclass(frozen=True, slots=True)
class SameTokens:
    """What `Translation` does, where there is nothing to translate."""

    num_text_ids: int
    """Of the drafter; it knows no other ids."""

    def heard(self, said: tuple[int, ...]) -> tuple[int, ...] | None:
        """The same ids; none where the drafter does not have them all."""
        return said if all(0 <= token < self.num_text_ids for token in said) else None

    def is_foreseen(self, said: tuple[int, ...], spoken: tuple[int, ...]) -> bool:
        """Whether the drafter has ``spoken`` all that the target ``said``."""
        return spoken[: len(said)] == said

    def draft(self, said: tuple[int, ...], spoken: tuple[int, ...]) -> tuple[int, ...]:
        """What the drafter has ``spoken`` after what the target ``said``."""
        return spoken[len(said) :]
