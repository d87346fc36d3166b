"""Where sealed memories wait while no engine has them: a directory, or a Redis or Valkey.

A store is believed in nothing: what it returns is checked by its seal. It knows streams by tenant
and name, and forgets by itself what nobody has saved again for the time that memories are kept.

[memory]
keep_days = 7                            # answers are forgotten after that
key_file = "/etc/headstart/memory.key"   # lets memories leave this server and come in
store = "redis://127.0.0.1:6379/0"       # or a directory; keeps them over restarts
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from headstart.errors import HeadstartError
from headstart.speculation.drafter import StreamKey
from headstart_server.settings_table import SettingsError, checked

TIMEOUT_S = 2.0
_PREFIX = "headstart:memory"
MIN_KEY_BYTES = 16
ENTRIES = {"keep_days": float, "key_file": str, "store": str, "save_every_s": float}
"""The entries of [memory] and the type of each."""


@dataclass(frozen=True)
class MemorySettings:
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
                raise SettingsError(f"[memory] {name} must be a number above 0")
        if self.store is not None and not self.keys:
            raise SettingsError(
                "[memory] store needs key_file, so that nobody else who writes there is believed:"
                " make a key with `openssl rand -hex 32` and name its file"
            )

    @property
    def keep_s(self) -> float:
        return self.keep_days * 86_400

    @property
    def is_redis(self) -> bool:
        """Whether the store is an address; a directory otherwise."""
        return urlsplit(self.store or "").scheme in ("redis", "rediss", "unix")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Read the table [memory], and the file of keys it names."""
        given = checked("memory", table, ENTRIES)
        file = given.pop("key_file", None)
        return cls(**given, keys=() if file is None else read_keys(Path(file)))


def read_keys(file: Path) -> tuple[bytes, ...]:
    """The keys of a file, one on each line: add a new one in front, and later remove the old."""
    try:
        lines = file.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"[memory] key_file {file} cannot be read: {error}") from error
    keys = tuple(line.strip().encode() for line in lines if line.strip())
    if not keys or min(map(len, keys)) < MIN_KEY_BYTES:
        raise SettingsError(
            f"[memory] key_file {file} needs a key of {MIN_KEY_BYTES} characters or more on each"
            " line: make one with `openssl rand -hex 32`"
        )
    return keys


class StoreError(HeadstartError):
    """The store cannot be reached, or failed."""


@dataclass(frozen=True)
class StoredStream:
    """A stream of which a memory is stored."""

    name: str
    num_bytes: int
    saved_at_s: float


class Store(Protocol):
    """Thread-safe. Any call may raise, `OSError` among others: the store may be away."""

    def get(self, stream: StreamKey) -> bytes | None:
        """What was put there last, unless it was forgotten."""

    def put(self, stream: StreamKey, data: bytes) -> None:
        """Store a stream's memory in place of the one before."""

    def streams(self, tenant: str) -> list[StoredStream]:
        """Of one tenant, those saved longest ago first."""

    def forget(self, stream: StreamKey) -> None:
        """Delete a stream's memory, if there is one."""


def open_store(settings: MemorySettings) -> Store | None:
    if settings.store is None:
        return None
    if settings.is_redis:
        return RedisStore(settings.store, settings.keep_s)
    return FileStore(Path(settings.store), settings.keep_s)


class FileStore:
    """A directory, which servers may share: a file for each stream, named by digests.

    A file holds the stream's name in a line, then its memory. It is replaced whole, so a reader
    finds the old one or the new one.
    """

    def __init__(self, directory: Path, keep_s: float) -> None:
        self._directory, self._keep_s = directory, keep_s
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"no memories can be kept in {directory} ({error.strerror}): name a directory that"
                " is yours as store under [memory], or leave it out"
            ) from error

    def get(self, stream: StreamKey) -> bytes | None:
        path = self._path(stream)
        try:
            return None if self._is_old(path) else path.read_bytes().partition(b"\n")[2]
        except FileNotFoundError:
            return None

    def put(self, stream: StreamKey, data: bytes) -> None:
        path = self._path(stream)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(stream.stream).encode("ascii") + b"\n" + data)
        fresh.replace(path)

    def streams(self, tenant: str) -> list[StoredStream]:
        found = []
        for path in (self._directory / _digest(tenant)).glob("*.memory"):
            try:
                if self._is_old(path):
                    path.unlink()
                    continue
                with path.open("rb") as file:
                    name = json.loads(file.readline())
                status = path.stat()
            except (FileNotFoundError, ValueError):
                continue  # another server has deleted it, or it is not ours
            found.append(StoredStream(name, status.st_size, status.st_mtime))
        return sorted(found, key=lambda each: each.saved_at_s)

    def forget(self, stream: StreamKey) -> None:
        self._path(stream).unlink(missing_ok=True)

    def _path(self, stream: StreamKey) -> Path:
        return self._directory / _digest(stream.tenant) / f"{_digest(stream.stream)}.memory"

    def _is_old(self, path: Path) -> bool:
        return path.stat().st_mtime < time.time() - self._keep_s


class RedisStore:
    """A Redis or Valkey: a value for each stream, and for each tenant the streams by time."""

    def __init__(self, address: str, keep_s: float) -> None:
        try:
            import redis
        except ImportError as error:
            raise SettingsError(
                "[memory] store is an address, and redis is not installed:"
                " pip install 'headstart[redis]'"
            ) from error
        self._keep_s = keep_s
        try:
            self._redis: Any = redis.Redis.from_url(
                address, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
            )
        except ValueError as error:
            raise SettingsError(
                f"[memory] store is no address of a Redis ({error}): redis://HOST:6379/0"
            ) from error

    def get(self, stream: StreamKey) -> bytes | None:
        found: bytes | None = self._redis.get(_value_key(stream))
        return found

    def put(self, stream: StreamKey, data: bytes) -> None:
        now_s, keep_ms = time.time(), int(self._keep_s * 1e3)
        index = _index_key(stream.tenant)
        with self._redis.pipeline() as steps:
            steps.set(_value_key(stream), data, px=keep_ms)
            steps.zadd(index, {stream.stream.encode("utf-8", "surrogatepass"): now_s})
            steps.pexpire(index, keep_ms)
            steps.execute()

    def streams(self, tenant: str) -> list[StoredStream]:
        index = _index_key(tenant)
        self._redis.zremrangebyscore(index, "-inf", time.time() - self._keep_s)
        names = [
            (name.decode("utf-8", "surrogatepass"), saved_at_s)
            for name, saved_at_s in self._redis.zrange(index, 0, -1, withscores=True)
        ]
        with self._redis.pipeline(transaction=False) as steps:
            for name, _ in names:
                steps.strlen(_value_key(StreamKey(tenant, name)))
            sizes = steps.execute()
        pairs = zip(names, sizes, strict=True)
        return [StoredStream(name, size, at_s) for (name, at_s), size in pairs if size]

    def forget(self, stream: StreamKey) -> None:
        with self._redis.pipeline() as steps:
            steps.delete(_value_key(stream))
            name = stream.stream.encode("utf-8", "surrogatepass")
            steps.zrem(_index_key(stream.tenant), name)
            steps.execute()


def _index_key(tenant: str) -> str:
    return f"{_PREFIX}:{_digest(tenant)}"


def _value_key(stream: StreamKey) -> str:
    return f"{_index_key(stream.tenant)}:{_digest(stream.stream)}"


def _digest(name: str) -> str:
    """No name of a tenant or a stream reaches out of its place, whatever it is."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
