"""How long memories are kept, where, and under which key.

[memory]
keep_days = 7                            # answers are forgotten after that
key_file = "/etc/headstart/memory.key"   # lets memories leave this server and come in
store = "redis://127.0.0.1:6379/0"       # or a directory; keeps them over restarts
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from headstart.errors import HeadstartError

MIN_KEY_BYTES = 16
_NUMBER = (int, float)
ENTRIES: dict[str, type | tuple[type, ...]] = {
    "keep_days": _NUMBER,
    "key_file": str,
    "store": str,
    "save_every_s": _NUMBER,
}
"""The entries of [memory] and the type of each."""


class MemoryKeepingError(HeadstartError):
    """The table [memory] cannot work."""


@dataclass(frozen=True)
class MemoryKeeping:
    """What the operator decided. Without keys no memory leaves the server or comes in."""

    keep_days: float = 7.0
    """Answers are forgotten after so many days."""
    keys: tuple[bytes, ...] = ()
    """A file of keys, one on each line. The first seals; what any of them has sealed is taken in.
    """
    store: str | None = None
    """The address of a Redis or Valkey, or a directory."""
    save_every_s: float = 10.0
    """Streams with new answers are saved so often; a killed server loses no more than that."""

    def __post_init__(self) -> None:
        for name in ("keep_days", "save_every_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise MemoryKeepingError(f"[memory] {name} must be a number above 0")
        if self.store is not None and not self.keys:
            raise MemoryKeepingError(
                "[memory] store needs key_file, so that nobody else who writes there is believed:"
                " make a key with `openssl rand -hex 32` and name its file"
            )

    @property
    def keep_s(self) -> float:
        """The same in seconds."""
        return self.keep_days * 86_400

    @property
    def is_redis(self) -> bool:
        """Whether the store is an address; a directory otherwise."""
        return urlsplit(self.store or "").scheme in ("redis", "rediss", "unix")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Read the table [memory], and the file of keys it names."""
        for name, value in table.items():
            kind = ENTRIES.get(name)
            if kind is None:
                raise MemoryKeepingError(f"[memory] {name} is not one of: {', '.join(ENTRIES)}")
            if not isinstance(value, kind) or isinstance(value, bool):
                raise MemoryKeepingError(
                    f"[memory] {name} is {value!r}, which is of the wrong type"
                )
        given = dict(table)
        file = given.pop("key_file", None)
        return cls(**given, keys=() if file is None else read_keys(Path(file)))


def read_keys(file: Path) -> tuple[bytes, ...]:
    """The keys of a file, one on each line: add a new one in front, and later remove the old."""
    try:
        lines = file.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MemoryKeepingError(f"[memory] key_file {file} cannot be read: {error}") from error
    keys = tuple(line.strip().encode() for line in lines if line.strip())
    if not keys or min(map(len, keys)) < MIN_KEY_BYTES:
        raise MemoryKeepingError(
            f"[memory] key_file {file} needs a key of {MIN_KEY_BYTES} characters or more on each"
            " line: make one with `openssl rand -hex 32`"
        )
    return keys
