"""Keys: whose they are, until when they open, and how they change while the server runs.

[tenants]
fleet-north = ["sk-a", {key = "sk-b", expires = 2027-01-01T00:00:00Z}]
fleet-south = ["sha256:9f86d081884c7d65..."]     # the key's digest: the file holds no secret

[operators]                                      # see everything, ask nothing
prometheus = ["sk-c"]

Only digests are kept, and they are compared in constant time.
"""

import hashlib
import hmac
import math
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from headstart.errors import HeadstartError

LOOK_EVERY_S = 1.0
_DIGEST = "sha256:"


class KeysError(HeadstartError):
    """A table of keys cannot be read."""


@dataclass(frozen=True)
class Caller:
    """Who asks, and what they may do: a tenant, an operator, or everybody."""

    name: str
    may_ask: bool = True
    sees_all: bool = False
    """Figures of every tenant; otherwise only their own."""


EVERYBODY = Caller("", sees_all=True)
"""On an open server."""


@dataclass(frozen=True)
class Key:
    """One key, as far as it is kept."""

    digest: bytes
    caller: Caller
    expires: datetime | None = None

    def opens(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires


@dataclass(frozen=True)
class Keys:
    """All keys at one moment. Without any, nobody is let in."""

    keys: tuple[Key, ...] = ()
    tenants: frozenset[str] = frozenset()
    """All that are named, those without a key too."""

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        """From the tables [tenants] and [operators] of a settings file."""
        owner_of: dict[bytes, Key] = {}
        for table in ("tenants", "operators"):
            owners = tables.get(table, {})
            if not isinstance(owners, dict):
                raise KeysError(f"[{table}] must be a table of names and their keys")
            for name, given in owners.items():
                where = f"[{table}] {name}"
                if not name:
                    raise KeysError(f"[{table}] has an empty name; give it one")
                caller = Caller(name) if table == "tenants" else _operator(name)
                for key in _keys(where, given, caller):
                    if owner_of.setdefault(key.digest, key).caller != key.caller:
                        raise KeysError(f"{where} shares a key with somebody else")
        return cls(tuple(owner_of.values()), frozenset(tables.get("tenants", {})))

    @property
    def admit_tenants(self) -> bool:
        """Whether any tenant has a key."""
        return any(key.caller.may_ask for key in self.keys)

    def caller(self, authorization: str) -> Caller | None:
        """Whose ``Bearer`` key this header holds; nobody's, or an expired one's, is none."""
        scheme, _, shown = authorization.partition(" ")
        digest, now, found = _digest(shown), datetime.now(UTC), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest) and key.opens(now):
                found = key.caller
        return found if scheme.lower() == "bearer" else None


class KeyFile:
    """The keys of a settings file, read again when the file changes. Used from one thread.

    Only the keys are taken from it again; everything else of the settings stays as it was at the
    start. A file that cannot be read leaves the keys as they were, and the reason is told.
    """

    def __init__(self, keys: Keys, path: Path | None, tell: Callable[[str], None]) -> None:
        self._keys = keys
        self._path = path
        self._tell = tell
        # Not yet seen: what changed while the model was loaded counts too.
        self._mark: tuple[int, int, int] | None = None
        self._looked_s = -math.inf

    @property
    def keys(self) -> Keys:
        """As the file has them now, or had them a second ago."""
        if self._path is not None and time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            if (mark := _mark(self._path)) != self._mark:
                self._mark = mark
                self._read(self._path)
        return self._keys

    def _read(self, path: Path) -> None:
        try:
            found = Keys.of(tomllib.loads(path.read_text()))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeysError) as error:
            self._tell(f"keys stay as they were; {path.name} cannot be read: {error}")
            return
        if found != self._keys:
            self._keys = found
            self._tell(f"the keys changed; there are {len(found.keys)} now")


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Different whenever the file is; none if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _operator(name: str) -> Caller:
    # Whoever collects figures has no need to ask the model.
    return Caller(name, may_ask=False, sees_all=True)


def _keys(where: str, given: object, caller: Caller) -> Iterator[Key]:
    for entry in given if isinstance(given, list) else [given]:
        expires = None
        if isinstance(entry, dict) and set(entry) == {"key", "expires"}:
            entry, expires = entry["key"], entry["expires"]
            if not isinstance(expires, datetime) or expires.tzinfo is None:
                raise KeysError(f"{where} expires at no time with a zone: 2027-01-01T00:00:00Z")
        if not isinstance(entry, str):
            raise KeysError(
                f'{where} must be a list of keys: ["sk-..."], or {{key = "sk-...", expires = ...}}'
            )
        yield Key(_kept(where, entry), caller, expires)


def _kept(where: str, key: str) -> bytes:
    if key.startswith(_DIGEST):
        try:
            digest = bytes.fromhex(key.removeprefix(_DIGEST))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise KeysError(f"{where} has a digest that is not sha256: and 64 hexadecimal digits")
        return digest
    # Whatever else cannot be sent in a header, so nobody could ever show it.
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise KeysError(f"{where} has a key that is not printable ASCII without spaces")
    return _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
