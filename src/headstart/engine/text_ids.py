"""Which token ids are text. Everything else holds a place, and is never drafted."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Self


@dataclass(frozen=True)
class TextIds:
    """Ids below ``stop`` that are not in ``except_for``."""

    stop: int
    except_for: frozenset[int]

    @classmethod
    def of(cls, hf_config: Any) -> Self:
        """Read from a model's config, whatever the model.

        Configs name their placeholders ``image_token_index``, ``video_token_id`` and the like.
        The token that ends an answer is as good a draft as any.
        """
        text_config = hf_config.get_text_config()
        named = {
            value
            for config in (hf_config, text_config)
            for name, value in config.to_dict().items()
            if name.endswith(("_token_id", "_token_index"))
            and not name.startswith("eos_")
            and isinstance(value, int)
        }
        return cls(text_config.vocab_size, frozenset(named))

    def prefix(self, tokens: Iterable[Any], most: int) -> list[int]:
        """``tokens`` up to the first that is not text, at most ``most`` of them."""
        if most <= 0:
            return []
        head = (token for _, token in zip(range(most), tokens, strict=False))
        return list(takewhile(self._is_text, head))

    def _is_text(self, token: Any) -> bool:
        return type(token) is int and 0 <= token < self.stop and token not in self.except_for
