"""A shard: the part of the streams that one process collects."""

import hashlib
import re
from dataclasses import dataclass
from typing import Self

from headstart.errors import CollectError


@dataclass(frozen=True)
class Shard:
    """Number ``number`` of ``count``, from 1 on. A stream is in exactly one of them."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise CollectError(f"there is no shard {self}: give one from 1/N to N/N, such as 2/8")

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``2/8``."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None:
            raise CollectError(f"{text!r} is no shard: give NUMBER/COUNT, such as 2/8")
        return cls(int(found[1]), int(found[2]))

    def holds(self, stream: str) -> bool:
        """Whether the stream is this shard's; the same on every machine, whatever else there is."""
        digest = hashlib.blake2b(stream.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
