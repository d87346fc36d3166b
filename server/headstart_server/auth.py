"""API keys: to whom they belong, when they expire, and their reload while the server runs.

[tenants]
fleet-north = ["sk-a", {key = "sk-b", expires = 2027-01-01T00:00:00Z}]
fleet-south = ["sha256:9f86d081884c7d65..."]     # the key's digest: the file holds no secret

[operators]                                      # see all metrics, send no requests
prometheus = ["sk-c"]

The server keeps digests only and compares them in constant time.
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

from headstart_server.settings_table import SettingsError

CHECK_EVERY_S = 1.0
_DIGEST = "sha256:"


@dataclass(frozen=True)
class Caller:
    """Who sent a request and what they may do: a tenant, an operator, or anyone."""

    name: str
    may_ask: bool = True
    sees_all: bool = False
    """Whether metrics of every tenant are shown, or only their own."""


ANYONE = Caller("", sees_all=True)
"""Every client of a server that asks for no keys."""


@dataclass(frozen=True)
class Key:
    """The digest of one key, its owner, and its end."""

    digest: bytes
    caller: Caller
    expires: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires


@dataclass(frozen=True)
class Keys:
    """All keys at one moment. Without any, every request is refused."""

    keys: tuple[Key, ...] = ()
    tenants: frozenset[str] = frozenset()
    """All names under ``[tenants]``, also those without a key."""

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        owner_of: dict[bytes, Key] = {}
        for table in ("tenants", "operators"):
            owners = tables.get(table, {})
            if not isinstance(owners, dict):
                raise SettingsError(f"[{table}] must be a table of names and their keys")
            for name, given in owners.items():
                where = f"[{table}] {name}"
                if not name:
                    raise SettingsError(f"[{table}] has an empty name; give it one")
                is_tenant = table == "tenants"
                caller = Caller(name, may_ask=is_tenant, sees_all=not is_tenant)
                for key in _keys(where, given, caller):
                    if owner_of.setdefault(key.digest, key).caller != key.caller:
                        raise SettingsError(f"{where} shares a key with another name")
        return cls(tuple(owner_of.values()), frozenset(tables.get("tenants", {})))

    @property
    def has_tenant_key(self) -> bool:
        return any(key.caller.may_ask for key in self.keys)

    def has_tenant(self, name: str) -> bool:
        """Whether a tenant of this name has a key that has not expired."""
        now = datetime.now(UTC)
        return any(
            key.caller.may_ask and key.caller.name == name and key.is_valid(now)
            for key in self.keys
        )

    def caller(self, authorization: str) -> Caller | None:
        """The owner of the ``Bearer`` key in this header; none if it is unknown or expired."""
        scheme, _, given = authorization.partition(" ")
        digest, now, found = _digest(given), datetime.now(UTC), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest) and key.is_valid(now):
                found = key.caller
        return found if scheme.lower() == "bearer" else None


class KeyFile:
    """The keys of a settings file, read again when the file changes. Used from one thread.

    Only the keys are read again; other settings need a restart. If the file cannot be read, the
    keys stay as they were and ``tell`` is called with the reason.
    """

    def __init__(self, keys: Keys, path: Path | None, tell: Callable[[str], None]) -> None:
        self._keys = keys
        self._path = path
        self._tell = tell
        # None: the file is read at the first request, as it may have changed during start-up.
        self._version: tuple[int, int, int] | None = None
        self._checked_s = -math.inf

    @property
    def keys(self) -> Keys:
        """As they are in the file, or were a second ago."""
        if self._path is not None and time.monotonic() - self._checked_s >= CHECK_EVERY_S:
            self._checked_s = time.monotonic()
            if (version := _version(self._path)) != self._version:
                self._version = version
                self._read(self._path)
        return self._keys

    def _read(self, path: Path) -> None:
        try:
            found = Keys.of(tomllib.loads(path.read_text()))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, SettingsError) as error:
            self._tell(f"keys stay as they were; {path.name} cannot be read: {error}")
            return
        if found != self._keys:
            self._keys = found
            self._tell(f"the keys changed; there are {len(found.keys)} now")


def _version(path: Path) -> tuple[int, int, int] | None:
    """Changes when the file does; none if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _keys(where: str, given: object, caller: Caller) -> Iterator[Key]:
    for entry in given if isinstance(given, list) else [given]:
        expires = None
        if isinstance(entry, dict) and set(entry) == {"key", "expires"}:
            entry, expires = entry["key"], entry["expires"]
            if not isinstance(expires, datetime) or expires.tzinfo is None:
                raise SettingsError(f"{where} expires at no time with a zone: 2027-01-01T00:00:00Z")
        if not isinstance(entry, str):
            raise SettingsError(
                f'{where} must be a list of keys: ["sk-..."], or {{key = "sk-...", expires = ...}}'
            )
        yield Key(_digest_of(where, entry), caller, expires)


def _digest_of(where: str, key: str) -> bytes:
    if key.startswith(_DIGEST):
        try:
            digest = bytes.fromhex(key.removeprefix(_DIGEST))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise SettingsError(
                f"{where} has a digest that is not sha256: and 64 hexadecimal digits"
            )
        return digest
    # Other characters cannot be sent in a header.
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(f"{where} has a key that is not printable ASCII without spaces")
    return _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
