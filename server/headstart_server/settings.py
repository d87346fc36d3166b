"""A server's settings: one TOML file, of which only the keys are read again while it runs.

[server]                         # every table may be left out
target = "path/or/name"
drafter = "path/or/name"
port = 8000

[tenants]                        # or open = true under [server], for no keys at all
fleet-north = ["sk-..."]         # see auth.py

[operators]                      # see all metrics, send no requests
prometheus = ["sk-..."]

[limits]
max_requests = 64

[media]                          # no files and no hosts unless named here
root = "/srv/clips"
domains = ["clips.example.org"]

[cameras]                        # no cameras read by the server, and no hooks, unless named here
hosts = ["192.168.1.20"]

[memory]                         # how long answers are remembered, and where they are kept
keep_days = 7                    # see memory/store.py

[vllm]                           # any of vLLM's own arguments, by its names
max_model_len = 4096
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, get_type_hints
from urllib.parse import urlsplit

from headstart.drafters.registry import DEFAULT_DRAFTERS
from headstart.engine.draft_model import DraftModel, draft_model
from headstart.engine.options import DEFAULT_REHEARSALS, Sources
from headstart_server.auth import Keys
from headstart_server.camera_access import CameraAccess
from headstart_server.limits import Limits
from headstart_server.memory.store import MemorySettings
from headstart_server.settings_table import SettingsError, checked

CONFIG_VARIABLE = "HEADSTART_CONFIG"
DEFAULT_DRAFT_TOKENS = 32
_PLAIN = (str, str | None, int, float, bool)
_PATHS = ("memory_log", "bridge", "log", "answer_log", "demo")
MEDIA_ENTRIES = {"root": str, "domains": list}
"""The entries of [media] and the type of each."""


@dataclass(frozen=True)
class Settings:
    """Everything that configures a server."""

    target: str = ""
    """The model that answers: a directory, or a name on the hub."""
    drafter: str | None = None
    """An EventGPT that drafts from the events of a request; beside a bridge its tower only."""
    whole_drafter: bool = False
    """Whether the drafter drafts and is previewed beside a bridge too, as without one."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8000
    """Port to listen on."""
    max_draft_tokens: int = DEFAULT_DRAFT_TOKENS
    """Verified in one pass; 0 keeps vLLM's own scheduler and drafts nothing."""
    warm_memory: bool = True
    """Whether a stream may be drafted for from the other streams of its tenant."""
    rehearsals: float = DEFAULT_REHEARSALS
    """Of the engine's time that all else takes, how much may be spent on answering the questions of
    live cameras before their windows end; 0: none."""
    memory_log: Path | None = None
    """Answers to draft from at the start, a file that ``headstart train memory`` has written."""
    bridge: Path | None = None
    """A learned drafter, a directory that ``headstart train bridge`` has written."""
    log: Path | None = None
    """File of the access log; standard error if none."""
    answer_log: Path | None = None
    """A directory in which each tenant's answers are kept to learn from; none are if none."""
    demo: Path | None = None
    """A directory of clips that the page offers."""
    open: bool = False
    """Whether requests need no key; all clients are then one tenant."""
    compare: bool = False
    """Whether an engine of vLLM alone runs beside the target, for live cameras to compare with."""
    origins: tuple[str, ...] = ()
    """Web pages of these origins may use an open server, besides its own. It answers to the names
    of their hosts too, besides addresses and ``localhost``."""
    path: Path | None = None
    """The file these settings were read from."""
    keys: Keys = field(default_factory=Keys)
    limits: Limits = field(default_factory=Limits)
    media_root: Path | None = None
    """Requests may name files below it."""
    media_domains: tuple[str, ...] = ()
    """Requests may name addresses on these hosts; redirects are not followed."""
    cameras: CameraAccess = field(default_factory=CameraAccess)
    """Where cameras may be that the server reads itself."""
    memory: MemorySettings = field(default_factory=MemorySettings)
    """How long answers are remembered, and where they are kept."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's own arguments, by its names."""
    drafter_vllm: Mapping[str, Any] = field(default_factory=dict)
    """The same, for the drafter's engine."""

    def __post_init__(self) -> None:
        if self.media_root is not None and not self.media_root.is_dir():
            raise SettingsError(f"the media root {self.media_root} is not a directory")
        if self.demo is not None and not self.demo.is_dir():
            raise SettingsError(f"{self.demo}, for the page's clips, is not a directory")
        logs = self.answer_log
        if logs is not None and logs.exists() and not logs.is_dir():
            raise SettingsError(
                f"{logs}, for logs of answers, is not a directory: name one as answer_log"
            )
        if self.drafter is not None and self.is_data_parallel:
            raise SettingsError(
                "A drafter is heard by one engine, not by data_parallel_size of them: start one"
                " server for each, or leave the drafter out"
            )

        if self.drafter is not None and not self.max_draft_tokens:
            raise SettingsError(
                "a drafter drafts nothing with max_draft_tokens 0; leave one of them out"
            )

    def check_auth(self) -> None:
        """Raise unless there are tenants' keys or the server is open, and not both."""
        if self.open and (self.keys.keys or self.keys.tenants):
            raise SettingsError(
                "the server is open and has keys too; leave out --open (open = true under"
                " [server]), or the tables [tenants] and [operators]"
            )
        if not self.open and not self.keys.has_tenant_key:
            raise SettingsError(
                "every request would be refused: name tenants and their keys under [tenants] in"
                " the settings, or ask for no keys with --open (open = true under [server])"
            )

    @property
    def draft_model(self) -> DraftModel | None:
        if self.drafter is None:
            return None
        sources = Sources() if self.whole_drafter else self.sources
        return draft_model(self.drafter, self.drafter_vllm, sources)

    @property
    def sources(self) -> Sources:
        """What drafts inside the scheduler."""
        learned = () if self.bridge is None else (f"bridge={self.bridge}",)
        drafters = (*DEFAULT_DRAFTERS, *learned)
        return Sources(
            drafters,
            warm=self.warm_memory,
            rehearsals=self.rehearsals,
            memory_log=self.memory_log,
        )

    @property
    def is_data_parallel(self) -> bool:
        """Whether several engines answer, each with its own memory of answers."""
        return self.vllm.get("data_parallel_size", 1) not in (1, None)

    @classmethod
    def server_entries(cls) -> dict[str, Any]:
        hints = get_type_hints(cls)
        plain = {name: hint for name, hint in hints.items() if hint in _PLAIN}
        return {**plain, **dict.fromkeys(_PATHS, str), "origins": list}

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            tables = tomllib.loads(path.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} cannot be read as TOML: {error}") from error
        return replace(cls.of(tables), path=path.absolute())

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        known = {"server", "tenants", "operators", "limits", "media", "cameras"}
        known |= {"memory", "vllm", "drafter_vllm"}
        for name, table in tables.items():
            if name not in known or not isinstance(table, dict):
                raise SettingsError(f"[{name}] is not one of: {', '.join(sorted(known))}")
        media = checked("media", tables.get("media", {}), MEDIA_ENTRIES)
        server = checked("server", tables.get("server", {}), cls.server_entries())
        for name in _PATHS:
            if name in server:
                server[name] = Path(server[name])
        if "origins" in server:
            server["origins"] = _origins(server["origins"])
        limits = checked("limits", tables.get("limits", {}), get_type_hints(Limits))
        keys = Keys.of(tables)
        if "tenants" in tables and not keys.has_tenant_key:
            raise SettingsError(
                "[tenants] holds no key, so every request would be refused; add a key, or leave"
                " the table out"
            )
        return cls(
            **server,
            keys=keys,
            limits=Limits(**limits),
            media_root=Path(media["root"]).resolve() if "root" in media else None,
            media_domains=tuple(str(domain) for domain in media.get("domains", ())),
            cameras=CameraAccess.of(tables.get("cameras", {})),
            memory=MemorySettings.of(tables.get("memory", {})),
            vllm=tables.get("vllm", {}),
            drafter_vllm=tables.get("drafter_vllm", {}),
        )

    @classmethod
    def from_environment(cls) -> Self:
        """Read the file that ``HEADSTART_CONFIG`` names, for a vLLM started without our command."""
        path = os.environ.get(CONFIG_VARIABLE)
        if not path:
            raise SettingsError(
                f"every request would be refused: set {CONFIG_VARIABLE} to a file with keys under"
                " [tenants], or with open = true under [server]"
            )
        settings = cls.read(Path(path))
        settings.check_auth()
        return settings


def _origins(given: list[Any]) -> tuple[str, ...]:
    for origin in given:
        parts = urlsplit(origin) if isinstance(origin, str) else None
        if parts is None or not parts.hostname or origin != f"{parts.scheme}://{parts.netloc}":
            raise SettingsError(
                f"[server] origins holds {origin!r}; give the scheme, host and port of a page, such"
                ' as "https://cameras.example.org" or "http://127.0.0.1:9000"'
            )
    return tuple(origin.lower() for origin in given)
