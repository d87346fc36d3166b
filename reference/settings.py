"""The tables of a server's TOML file, from the classes that read them."""

from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from headstart_server import camera_access
from headstart_server.limits import Limits
from headstart_server.memory import store
from headstart_server.settings import MEDIA_ENTRIES, Settings
from reference.markdown import code, document, prose, table
from reference.source import docs_of_fields

_OPENING = """# Settings

`headstart serve --config FILE` reads one TOML file. Every table and every entry may be left
out, except that a server needs a `target` and either keys or `open`. An entry that is not
listed here is an error that names it. [Serving](../serving.md#settings) shows a whole file."""
_KEYS = """## [tenants] and [operators]

Each entry is a name and a list of its keys. Only a tenant's keys can send requests; an
operator's keys show all metrics. These two tables are read again while the server runs. A key
is one of

- a text, `"sk-..."`;
- its digest, `"sha256:..."` with 64 hexadecimal digits;
- an object with its end, `{ key = "sk-...", expires = 2027-01-01T00:00:00Z }`."""
_LIMITS = """Every limit is a number above 0; no value means "no limit". A request over a limit
gets 429 with `Retry-After` where waiting helps, and 400 where the request itself is too large,
unless the table says otherwise."""
_ENGINES = """## [vllm] and [drafter_vllm]

Any of vLLM's own engine arguments, by its names, for the target's engine and for the drafter's.
vLLM checks them when it starts."""


def page() -> str:
    """The page of all tables."""
    settings = docs_of_fields("headstart_server.settings")
    limits = docs_of_fields("headstart_server.limits")["Limits"]
    access = docs_of_fields("headstart_server.camera_access")["CameraAccess"]
    kept = docs_of_fields("headstart_server.memory.store")["MemorySettings"]
    own, media = settings["Settings"], ("media_root", "media_domains")
    return document(
        _OPENING,
        "## [server]",
        _entries(Settings.server_entries(), vars(Settings()), own),
        _KEYS,
        "## [limits]",
        _LIMITS,
        _entries(get_type_hints(Limits), vars(Limits()), limits),
        "## [media]",
        _entries(MEDIA_ENTRIES, {}, {name.removeprefix("media_"): own[name] for name in media}),
        "## [cameras]",
        _entries(camera_access.ENTRIES, {}, access),
        "## [memory]",
        _entries(
            store.ENTRIES,
            vars(store.MemorySettings()),
            {**kept, "key_file": kept["keys"]},
        ),
        _ENGINES,
    )


def _entries(kinds: Mapping[str, Any], defaults: Mapping[str, Any], docs: Mapping[str, str]) -> str:
    rows = (
        (code(name), _kind(kind), _default(defaults.get(name)), prose(docs[name]))
        for name, kind in kinds.items()
    )
    return table(("entry", "type", "default", ""), rows)


def _kind(kind: Any) -> str:
    """A type in the words of TOML."""
    names = {str: "text", int: "integer", float: "number", bool: "boolean", list: "list of texts"}
    if isinstance(kind, tuple) or get_origin(kind) in (Union, UnionType):
        members: Iterable[Any] = kind if isinstance(kind, tuple) else get_args(kind)
        members = set(members) - {type(None)}
        return "number" if members == {int, float} else " or ".join(names[each] for each in members)
    return names[kind]


def _default(value: Any) -> str:
    if value in (None, "", ()):
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else str(value))
