"""Whether two models have the same tokens: only then can one draft for the other by token ids."""

from collections.abc import Mapping

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
