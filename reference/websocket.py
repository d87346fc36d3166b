"""The messages of the live socket, from the classes and the code that read and write them."""

import ast
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import TypeAdapter

from headstart.answers.preview import Shown
from headstart_client.wire import EVENT, HEADER, PATH, SUBPROTOCOL, CloseCode, MediaKind
from headstart_server.live import messages
from reference.http import fields
from reference.markdown import code, document, prose, table
from reference.source import SOURCES, docs_of_fields, read_class

_OPENING = f"""# WebSocket

The messages of `{PATH}`, subprotocol `{SUBPROTOCOL}`. [The live protocol](../live-protocol.md)
says in which order they come, and what happens when something is too slow or the connection
breaks."""
_BINARY = f"""## Binary messages of the client

{HEADER.size} bytes and a payload: a byte for the kind, then the time in microseconds, a signed
integer of eight bytes, big-endian. An event is {EVENT.itemsize} bytes, little-endian: `t` (8,
signed), `x` (2), `y` (2), `p` (1)."""
_SERVER = """## Text messages of the server

JSON objects; a `type` and these fields. [What each
means](../live-protocol.md#what-the-server-says)."""
_MORE = {
    "answer": ("and `number` or `id`",),
    "error": ("sometimes `id`", "sometimes `retry_after_s`"),
}
"""Fields that are added on the way."""
_LIVE = SOURCES["headstart_server"] / "headstart_server" / "live"


def page() -> str:
    """The page of all messages."""
    docs = docs_of_fields("headstart_server.live.messages")
    media = docs_of_fields("headstart_client.wire")
    return document(
        _OPENING,
        "## Text messages of the client",
        *(_client_message(kind, docs[kind.__name__]) for kind in get_args(messages.FromClient)),
        _BINARY,
        table(
            ("kind", "payload"),
            ((str(each.value), prose(media["MediaKind"][each.name])) for each in MediaKind),
        ),
        _SERVER,
        table(("type", "fields"), _server_messages()),
        "## Close codes",
        table(
            ("code", "name", ""),
            (
                (str(each.value), each.name.lower(), prose(media["CloseCode"].get(each.name, "")))
                for each in CloseCode
            ),
        ),
    )


def _client_message(kind: type[Any], docs: dict[str, str]) -> str:
    schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/Taken.{model}")
    inner = schema.get("$defs", {})
    for name, field in schema["properties"].items():
        schema["properties"][name] = _inlined(field, inner)
    known = read_class("headstart_server.live.messages", kind.__name__)
    assert known is not None
    name = schema["properties"].pop("type")["const"]
    told = fields(schema, docs) if schema["properties"] else "It has no other field."
    return document(f"### {name}", known.doc, told)


def _inlined(field: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """A field with the few shared schemas, an enumeration, in place of references to them."""
    if "$ref" in field:
        return dict(inner[field["$ref"].rpartition(".")[2]])
    if "anyOf" in field:
        return {**field, "anyOf": [_inlined(each, inner) for each in field["anyOf"]]}
    return field


def _server_messages() -> Iterator[tuple[str, str]]:
    """Every object with a ``type`` that the code of the live socket writes."""
    found: dict[str, list[str]] = {}
    for path in sorted(_LIVE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Dict):
                continue
            given = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            match given.pop("type", None):
                case ast.Constant(value=str(kind)) if "." not in kind:
                    found[kind] = list(given)
    for shown in get_args(Shown):
        names = [name for name in shown.__dataclass_fields__ if name != "text"]
        found[shown.__name__.lower()] = ["number", "text", *names]
    for name, names in sorted(found.items()):
        yield code(name), ", ".join([*map(code, names), *_MORE.get(name, ())])
