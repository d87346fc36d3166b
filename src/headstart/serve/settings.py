"""How a server is set up: one TOML file, read once, never changed afterwards.

[server]                         # all of it may be left out
target = "path/or/name"
drafter = "path/or/name"
port = 8000

[tenants]                        # none: everybody is one tenant and no key is asked for
fleet-north = ["sk-..."]

[limits]
max_requests = 64

[media]                          # closed unless named here
root = "/srv/clips"
domains = ["clips.example.org"]

[vllm]                           # any of vLLM's own arguments, by its names
max_model_len = 4096
"""

import hashlib
import hmac
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, get_type_hints

from headstart.engine.placement import Seat
from headstart.errors import HeadstartError

CONFIG_VARIABLE = "HEADSTART_CONFIG"
DEFAULT_DRAFT_TOKENS = 32


class SettingsError(HeadstartError):
    """The server was set up in a way that cannot work."""


@dataclass(frozen=True)
class Limits:
    """What one request, one tenant and all of them together may take."""

    max_requests: int = 64
    """At once, by everybody. More are told to come back: 429."""
    max_tenant_requests: int = 32
    """At once, by one tenant."""
    max_body_bytes: int = 32 << 20
    max_choices: int = 8
    """Answers to one request (``n``)."""
    max_messages: int = 256
    max_frame_pixels: int = 4096 * 2304
    """Of one frame or picture, decoded."""
    max_video_s: int = 600
    max_events: int = 5_000_000
    """Read of one recording."""
    max_window_us: int = 10_000_000
    """Of events in one request."""
    max_uploads: int = 64
    """Kept for one tenant; the oldest goes when another comes."""
    max_upload_bytes: int = 256 << 20
    """All uploads of one tenant together."""
    body_s: float = 60.0
    """A client may take to send its request."""
    request_s: float = 300.0
    """A request may take altogether."""
    drain_s: float = 30.0
    """Requests under way may take to end after SIGTERM."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise SettingsError(f"[limits] {name} is {value}; give more than 0")


@dataclass(frozen=True)
class Keys:
    """Which tenant a key belongs to. Holds digests only; compares in constant time."""

    tenant_of: Mapping[bytes, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tenants: Mapping[str, Any]) -> Self:
        """From the names of tenants and their keys."""
        tenant_of: dict[bytes, str] = {}
        for tenant, keys in tenants.items():
            given = [keys] if isinstance(keys, str) else keys
            if not isinstance(given, list) or not all(isinstance(k, str) and k for k in given):
                raise SettingsError(f"[tenants] {tenant} must be a list of keys, each some text")
            for key in given:
                digest = _digest(key)
                if tenant_of.get(digest, tenant) != tenant:
                    raise SettingsError(f"[tenants] {tenant} shares a key with another tenant")
                tenant_of[digest] = tenant
        return cls(tenant_of)

    @property
    def needed(self) -> bool:
        """Whether clients must show one."""
        return bool(self.tenant_of)

    def tenant(self, authorization: str) -> str | None:
        """Whose ``Bearer`` key this header holds; nobody's is none."""
        scheme, _, key = authorization.partition(" ")
        digest, found = _digest(key), None
        for known, tenant in self.tenant_of.items():
            if hmac.compare_digest(known, digest):
                found = tenant
        return found if scheme.lower() == "bearer" else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True)
class Settings:
    """Everything a server is told before it starts."""

    target: str = ""
    drafter: str | None = None
    """An EventGPT that drafts from the events of a request."""
    host: str = "127.0.0.1"
    port: int = 8000
    max_draft_tokens: int = DEFAULT_DRAFT_TOKENS
    """At a time; 0 leaves vLLM's scheduler as it is."""
    log: Path | None = None
    """Where a line of JSON a request goes; standard error if none."""
    demo: Path | None = None
    """A directory of clips that the page offers."""
    keys: Keys = field(default_factory=Keys)
    limits: Limits = field(default_factory=Limits)
    media_root: Path | None = None
    """Files below it may be named by requests."""
    media_domains: tuple[str, ...] = ()
    """Hosts from which vLLM may fetch a video; redirects are not followed."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    drafter_vllm: Mapping[str, Any] = field(default_factory=dict)
    drafter_seat: Seat = field(default_factory=Seat)
    """Where the drafter computes; found out, not configured."""

    def __post_init__(self) -> None:
        if self.media_root is not None and not self.media_root.is_dir():
            raise SettingsError(f"the media root {self.media_root} is not a directory")
        if self.demo is not None and not self.demo.is_dir():
            raise SettingsError(f"{self.demo}, for the page's clips, is not a directory")
        if self.drafter is not None and self.is_data_parallel:
            raise SettingsError(
                "A drafter is heard by one engine, not by data_parallel_size of them: start one"
                " server for each, or leave the drafter out"
            )

    @property
    def is_data_parallel(self) -> bool:
        """Whether several engines answer, each with a memory of its own."""
        return self.vllm.get("data_parallel_size", 1) not in (1, None)

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a TOML file."""
        try:
            tables = tomllib.loads(path.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} cannot be read as TOML: {error}") from error
        return cls.of(tables)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        """From the tables of such a file."""
        known = {"server", "tenants", "limits", "media", "vllm", "drafter_vllm"}
        for name, table in tables.items():
            if name not in known or not isinstance(table, dict):
                raise SettingsError(f"[{name}] is not one of: {', '.join(sorted(known))}")
        media = _checked("media", tables.get("media", {}), {"root": str, "domains": list})
        plain = {"target", "drafter", "host", "port", "max_draft_tokens", "log", "demo"}
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name in plain}
        server = _checked("server", tables.get("server", {}), {**hints, "log": str, "demo": str})
        for name in ("log", "demo"):
            if name in server:
                server[name] = Path(server[name])
        limits = _checked("limits", tables.get("limits", {}), get_type_hints(Limits))
        return cls(
            **server,
            keys=Keys.of(tables.get("tenants", {})),
            limits=Limits(**limits),
            media_root=Path(media["root"]).resolve() if "root" in media else None,
            media_domains=tuple(str(domain) for domain in media.get("domains", ())),
            vllm=tables.get("vllm", {}),
            drafter_vllm=tables.get("drafter_vllm", {}),
        )

    @classmethod
    def from_environment(cls) -> Self:
        """From the file that ``HEADSTART_CONFIG`` names, for those who start vLLM themselves."""
        path = os.environ.get(CONFIG_VARIABLE)
        return cls.read(Path(path)) if path else cls()


def _checked(name: str, table: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a table whose every entry is known and of its kind."""
    for key, value in table.items():
        if key not in kinds:
            raise SettingsError(f"[{name}] {key} is not one of: {', '.join(sorted(kinds))}")
        kind = (int, float) if kinds[key] is float else kinds[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise SettingsError(f"[{name}] {key} is {value!r}, which is not of the right kind")
    return dict(table)
