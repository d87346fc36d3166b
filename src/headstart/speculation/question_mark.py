"""The number that stands for a question in front of its answer, where answers are remembered."""

import hashlib

_BYTES = 4


def question_mark(question: str) -> int:
    """Of 30 bits, the same in every process, and negative as no token id is.

    The same everywhere, because memories travel between engines. Two questions of one mark are
    taken for the same one, which costs a wrong draft.
    """
    digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=_BYTES)
    return -1 - (int.from_bytes(digest.digest()) & 0x3FFFFFFF)
