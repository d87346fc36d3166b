"""One model's tokenizer as far as text goes: the exact text of ids, and the ids of words.

It is given the tokenizer's functions, so it knows no package that has tokenizers.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from headstart.speculation.vocabulary import TextVocabulary

NOT_WHOLE = "\ufffd"
"""What a tokenizer decodes bytes to that are not a whole character."""
MAX_CACHED_WORDS = 4096

# A word takes the space before it along. Tokenizers make no piece across this place, and look
# across it neither to split a text nor to join pieces: so each word has the same ids in any text.
# Other places will not do: one tokenizer joins a full stop to the line break after it, another
# splits a run of spaces by what follows.
_BETWEEN_WORDS = re.compile(r"(?<=\S)(?= )")


def words_of(text: str) -> list[str]:
    """The words of a text, each with the spaces before it; together they are the text."""
    return _BETWEEN_WORDS.split(text)


class TextTokenizer:
    """Text to ids and back, exactly. Equal arguments give equal results; not thread-safe.

    Tokenizers like Llama's mark the begin of a text as that of a word, and take the mark off again.
    So nothing is encoded or decoded at the begin of a text here: it stands behind an anchor, which
    is cut off afterwards.
    """

    def __init__(
        self,
        encode: Callable[[str], Sequence[int]],
        decode: Callable[[Sequence[int]], str],
        vocabulary: TextVocabulary,
        end_id: int | None,
        opening: str = " ",
    ) -> None:
        """Take two functions that neither add nor leave out special ids.

        ``end_id`` ends an answer and is no text. ``opening`` stands between the model's prompt and
        the first word of its answer: a space, or nothing after a prompt that ends with one.
        """
        self._encode, self._decode = encode, decode
        self.vocabulary = vocabulary
        self.end_id = end_id
        self.opening = opening
        # No tokenizer joins a letter to a space after it, nor a line break to a letter after it.
        self._after_letter = "a", tuple(encode("a"))
        self._after_line = "\n", tuple(encode("\n"))
        self._anchor_text = decode(self._after_letter[1])
        self._cached = lru_cache(MAX_CACHED_WORDS)(self._word_ids)

    def text(self, ids: Sequence[int]) -> str:
        """What the ids say, with `NOT_WHOLE` for bytes that are no character."""
        decoded = self._decode([*self._after_letter[1], *ids])
        return decoded[len(self._anchor_text) :]

    def can_say(self, word: str) -> bool:
        """Whether a word has ids, all of them text."""
        return self._cached(word) is not None

    def ids(self, words: Iterable[str]) -> tuple[int, ...]:
        """Of whole words one after the other, up to the first that it cannot say."""
        found: list[int] = []
        for word in words:
            ids = self._cached(word)
            if ids is None:
                break
            found += ids
        return tuple(found)

    def _word_ids(self, word: str) -> tuple[int, ...] | None:
        anchor, anchor_ids = self._after_letter if word[:1].isspace() else self._after_line
        ids = tuple(self._encode(anchor + word))
        if ids[: len(anchor_ids)] == anchor_ids:
            ids = ids[len(anchor_ids) :]
        else:  # a tokenizer of a kind of its own
            ids = tuple(self._encode(word))
        # A word may read like a special token, or hold characters that are unknown.
        return ids if self.vocabulary.text_prefix(ids) == ids else None
