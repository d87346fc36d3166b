"""How a server is set up: one TOML file, read once. Of it only the keys may change afterwards.

[server]                         # all of it may be left out
target = "path/or/name"
drafter = "path/or/name"
port = 8000

[tenants]                        # or open = true under [server]: no key is asked for
fleet-north = ["sk-..."]         # see keys.py

[operators]                      # may see all figures, and ask nothing
prometheus = ["sk-..."]

[limits]
max_requests = 64

[media]                          # closed unless named here
root = "/srv/clips"
domains = ["clips.example.org"]

[vllm]                           # any of vLLM's own arguments, by its names
max_model_len = 4096
"""

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, get_type_hints

from headstart.drafters.memory import DEFAULT_MAX_BYTES, DEFAULT_MAX_TENANT_BYTES
from headstart.engine.placement import Seat
from headstart.errors import HeadstartError
from headstart.serve.keys import Keys

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
    requests_per_minute: int = 24_000
    """By everybody. More are told when to come back: 429."""
    tenant_requests_per_minute: int = 6_000
    tokens_per_minute: int = 40_000_000
    """Of prompts and answers, by everybody; counted when they are computed."""
    tenant_tokens_per_minute: int = 10_000_000
    max_body_bytes: int = 32 << 20
    """Of one request."""
    max_bodies_bytes: int = 512 << 20
    """Bodies of all requests under way."""
    max_tenant_bodies_bytes: int = 256 << 20
    """The same, of one tenant."""
    max_choices: int = 8
    """Answers to one request (``n``)."""
    max_messages: int = 256
    max_text_characters: int = 1 << 18
    """Of one request: messages, prompts, tools, all its texts together."""
    max_grammar_bytes: int = 64 << 10
    """Of a JSON schema, a regular expression or a grammar that binds the answer."""
    grammar_s: float = 2.0
    """A grammar may take to compile."""
    max_clips: int = 8
    """Videos and pictures of one request."""
    max_frame_pixels: int = 4096 * 2304
    """Of one frame or picture, decoded."""
    max_clip_pixels: int = 96 << 20
    """Of all frames taken from one video."""
    max_video_s: int = 600
    max_media_file_bytes: int = 256 << 20
    """Of a file below the media root, or fetched from an open domain."""
    max_decoders: int = 4
    """Processes that decode videos, pictures and events, at once."""
    decoder_bytes: int = 1 << 30
    """Memory one of them may take, beside the frames it hands over."""
    decode_s: float = 15.0
    """One video, picture or recording may take to decode; a small one less."""
    max_media_bytes: int = 1 << 30
    """Decoded media that requests under way hold, of everybody."""
    max_tenant_media_bytes: int = 512 << 20
    """The same, of one tenant."""
    max_memory_bytes: int = DEFAULT_MAX_BYTES
    """Answers remembered to draft from, of everybody."""
    max_tenant_memory_bytes: int = DEFAULT_MAX_TENANT_BYTES
    """The same, of one tenant."""
    max_events: int = 5_000_000
    """Read of one recording."""
    max_window_us: int = 10_000_000
    """Of events in one request."""
    max_uploads: int = 64
    """Kept for one tenant; its oldest goes when another comes."""
    max_upload_bytes: int = 256 << 20
    """All uploads of one tenant together."""
    max_all_uploads: int = 512
    """Kept for everybody. Nobody's goes for another tenant's: then there is no room, 507."""
    max_all_upload_bytes: int = 1 << 30
    min_free_bytes: int = 512 << 20
    """With less memory left, new requests are sent away: 503."""
    heartbeat_s: float = 30.0
    """Without a sign of life from the engine for so long, the server is not ready."""
    body_s: float = 60.0
    """A client may take to send its request."""
    request_s: float = 300.0
    """A request may take altogether."""
    drain_s: float = 30.0
    """Requests under way may take to end after SIGTERM."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise SettingsError(f"[limits] {name} is {value}; give a number above 0")


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
    open: bool = False
    """Whether everybody is let in, without a key and as one tenant."""
    path: Path | None = None
    """The file all this was read from."""
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

    def check_door(self) -> None:
        """Raise unless it is clear who is let in: those with a key, or everybody."""
        if self.open and (self.keys.keys or self.keys.tenants):
            raise SettingsError(
                "the server is open to everybody and has keys too; leave out --open (open = true"
                " under [server]), or the tables [tenants] and [operators]"
            )
        if not self.open and not self.keys.admit_tenants:
            raise SettingsError(
                "nobody could ask this server: name tenants and their keys under [tenants] in its"
                " settings, or let everybody in with --open (open = true under [server])"
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
        return replace(cls.of(tables), path=path.absolute())

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        """From the tables of such a file."""
        known = {"server", "tenants", "operators", "limits", "media", "vllm", "drafter_vllm"}
        for name, table in tables.items():
            if name not in known or not isinstance(table, dict):
                raise SettingsError(f"[{name}] is not one of: {', '.join(sorted(known))}")
        media = _checked("media", tables.get("media", {}), {"root": str, "domains": list})
        plain = {"target", "drafter", "host", "port", "max_draft_tokens", "log", "demo", "open"}
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name in plain}
        server = _checked("server", tables.get("server", {}), {**hints, "log": str, "demo": str})
        for name in ("log", "demo"):
            if name in server:
                server[name] = Path(server[name])
        limits = _checked("limits", tables.get("limits", {}), get_type_hints(Limits))
        keys = Keys.of(tables)
        if "tenants" in tables and not keys.admit_tenants:
            raise SettingsError(
                "[tenants] holds no key, so nobody could ask; add one, or leave the table out"
            )
        return cls(
            **server,
            keys=keys,
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
        if not path:
            raise SettingsError(
                f"nobody could ask this server: set {CONFIG_VARIABLE} to a file with keys under"
                " [tenants], or with open = true under [server]"
            )
        settings = cls.read(Path(path))
        settings.check_door()
        return settings


def _checked(name: str, table: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a table whose every entry is known and of its kind."""
    for key, value in table.items():
        if key not in kinds:
            raise SettingsError(f"[{name}] {key} is not one of: {', '.join(sorted(kinds))}")
        kind = (int, float) if kinds[key] is float else kinds[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SettingsError(f"[{name}] {key} is {value!r}, which is not of the right kind")
    return dict(table)
