"""Whether two models have the same tokens: only then can one draft for the other by token ids."""

from collections.abc import Mapping

from headstart.errors import DraftingError

_MOST_NAMED = 4


def check_same_tokenizer(target: Mapping[str, int], drafter: Mapping[str, int]) -> None:
    """Raise unless every piece of text the drafter may say has the target's id.

    The target may know more pieces; those are never drafted.
    """
    strange = sorted((piece for piece, id in drafter.items() if target.get(piece) != id), key=len)
    if not drafter or strange:
        examples = ", ".join(
            f"{piece!r} is {drafter[piece]} to the drafter and {target.get(piece, 'unknown')}"
            " to the target"
            for piece in strange[:_MOST_NAMED]
        )
        raise DraftingError(
            f"The drafter spells otherwise than the target: {len(strange)} of its"
            f" {len(drafter)} pieces differ ({examples or 'it has none'}). Choose a drafter with"
            " the target's tokenizer."
        )
