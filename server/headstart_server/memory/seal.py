"""A stream's memory as bytes that only an engine with the operator's key can have written.

    headstart-memory 1 <HMAC-SHA256 of all that follows, in hexadecimal>
    {"tenant": ..., "stream": ..., "tokenizer": ..., "sealed_at_s": ..., "answers": ..., ...}
    <token ids, 32 bits each, little-endian>

Nothing is read before the seal is checked. It is not encrypted: who can read it can read the
answers, if not the questions.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from headstart.drafters.stream_snapshot import MAX_TOKENS, StreamSnapshot
from headstart.errors import DraftingError, HeadstartError
from headstart.speculation.drafter import StreamKey

MAX_BYTES = 4 * MAX_TOKENS + (1 << 19)
_NAME = b"headstart-memory"
_VERSION = b"1"
_MAC = hashlib.sha256


class SealError(HeadstartError):
    """A sealed memory cannot be taken in."""


@dataclass(frozen=True)
class OpenedMemory:
    """What a sealed memory says, and who it says it of."""

    stream: StreamKey
    sealed_at_s: float
    snapshot: StreamSnapshot


class SnapshotSeal:
    """Seals for one tokenizer: under another one the same ids are other words."""

    def __init__(self, keys: Sequence[bytes], tokenizer: str) -> None:
        """``keys`` are the operator's; the first seals."""
        self._keys = tuple(keys)
        self._tokenizer = tokenizer

    def seal(self, stream: StreamKey, snapshot: StreamSnapshot) -> bytes:
        plain = snapshot.plain()
        header = {
            "tenant": stream.tenant,
            "stream": stream.stream,
            "tokenizer": self._tokenizer,
            "sealed_at_s": round(time.time(), 3),
            "lengths": plain["lengths"],
            "said_at_s": [round(at_s, 3) for at_s in plain["said_at_s"]],
            "earned": plain["earned"],
        }
        said: bytes = plain["said"]
        content = json.dumps(header, separators=(",", ":")).encode("ascii") + b"\n" + said
        mac = _mac(self._keys[0], content).encode("ascii")
        return b" ".join((_NAME, _VERSION, mac)) + b"\n" + content

    def open(self, data: bytes, tenant: str) -> OpenedMemory:
        """What it holds, if it is sealed with one of the keys and of this very tenant."""
        if len(data) > MAX_BYTES:
            raise SealError(f"a memory has {MAX_BYTES} bytes at most")
        first, _, content = data.partition(b"\n")
        name, _, rest = first.partition(b" ")
        version, _, mac = rest.partition(b" ")
        if name != _NAME:
            raise SealError("this is no memory of a stream: give what an export has written")
        if version != _VERSION:
            raise SealError("this memory has another format: export it with this version")
        # Every key is tried, so that the time says nothing about which one it was.
        macs = [hmac.compare_digest(_mac(key, content).encode(), mac) for key in self._keys]
        if not any(macs):
            raise SealError(
                "the seal is not of this server's keys: give both servers the same key_file under"
                " [memory]"
            )
        return self._read(content, tenant)

    def _read(self, content: bytes, tenant: str) -> OpenedMemory:
        line, _, said = content.partition(b"\n")
        try:
            header = json.loads(line)
            stream, owner = header["stream"], header["tenant"]
            tokenizer, sealed_at_s = header["tokenizer"], float(header["sealed_at_s"])
            if owner != tenant or not isinstance(stream, str):
                raise SealError("this memory is another tenant's")
            if tokenizer != self._tokenizer:
                raise SealError("this memory was made with another tokenizer: its ids mean nothing")
            snapshot = StreamSnapshot.parse({**header, "said": said})
        except (ValueError, TypeError, KeyError, RecursionError, DraftingError) as error:
            raise SealError(f"this memory cannot be read: {error}") from error
        return OpenedMemory(StreamKey(tenant, stream), sealed_at_s, snapshot)


def tokenizer_name(vocabulary: dict[str, int]) -> str:
    """Equal for tokenizers whose ids are the same words."""
    rows = sorted(vocabulary.items(), key=lambda row: (row[1], row[0]))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]


def _mac(key: bytes, content: bytes) -> str:
    return hmac.new(key, _NAME + b" " + _VERSION + b"\n" + content, _MAC).hexdigest()
