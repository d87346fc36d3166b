"""The routes of the server, and the bodies that they take."""

import json
from collections.abc import Mapping
from typing import Any

from headstart_server.bodies.wording import CLOSED
from headstart_server.routes import ROUTES, Access, Route
from headstart_server.schema import openapi_schema
from reference.markdown import code, document, prose, table
from reference.source import docs_of_fields

_OPENING = """# HTTP

Every route of `headstart serve`. Any other route, also of vLLM's, is not found. A key is sent
as `Authorization: Bearer KEY`. [Serving](../serving.md) has examples that run, and
[operation](../operation.md#cameras-that-the-server-reads) those of `/v1/cameras`. A running
server has the same as `/openapi.json`.

A refusal is OpenAI's error object, whose `message` says what to change; its status is 400 for
the request itself, 401 for the key, 403 for what the key may not do, 404 for what does not
exist, 413 for a body that is too long, 429 for a limit, and 503 while the server cannot take
requests. [Settings](settings.md#limits) lists the limits."""
_QUERIES = """## Queries

Entries of an address after its `?`, each at most once."""
_BODIES = """## Bodies

A field that is not listed is refused by name. Numbers must be numbers: a count is neither
`"16"` nor `16.0`."""
_CLOSED = """## Closed fields

Fields of vLLM's or OpenAI's interface that are refused, and why."""
_ABOUT = {
    "GET /": "A page that asks about a clip.",
    "GET /live": "A page for live cameras.",
    "GET /health": "Whether vLLM's engine process is there.",
    "GET /metrics": "Metrics for Prometheus.",
    "GET /version": "vLLM's version.",
    "GET /openapi.json": "The schema of these routes.",
    "GET /demo": "The clips that the page offers.",
    "GET /demo/{id}": "One of them.",
    "GET /v1/models": "The model's name.",
    "POST /v1/chat/completions": "Answer a chat, with videos, pictures and events.",
    "POST /v1/completions": "Continue a text.",
    "POST /tokenize": "The tokens of a text or a chat.",
    "POST /detokenize": "The text of tokens.",
    "GET /v1/headstart/events/{id}": "What an upload holds.",
}
"""Of routes that the schema does not describe: pages, and those that vLLM answers."""
_SCHEMAS = "#/components/schemas/Taken."
_SOURCES = (
    "bodies.kinds",
    "bodies.grammars",
    "bodies.messages",
    "bodies.sampling",
    "bodies.routes",
    "live.messages",
)


def page() -> str:
    """The page of all routes and bodies."""
    schema = openapi_schema(_vllm_schema())
    docs: dict[str, dict[str, str]] = {}
    for name in _SOURCES:
        docs |= docs_of_fields(f"headstart_server.{name}")
    objects = schema["components"]["schemas"]
    return document(
        _OPENING,
        "## Routes",
        table(("route", "", "needs"), (_route(route, schema["paths"]) for route in ROUTES)),
        table(("", "means"), ((f"*{each.name.lower()}*", each.value) for each in Access)),
        _QUERIES,
        table(("query of", "entry", "is", "default", ""), _queries(schema["paths"])),
        _BODIES,
        table(("body of", "is"), _bodies(schema["paths"])),
        *(_object(name.removeprefix("Taken."), objects[name], docs) for name in sorted(objects)),
        _CLOSED,
        table(("field", "because"), ((code(name), why) for name, why in sorted(CLOSED.items()))),
    )


def _vllm_schema() -> dict[str, Any]:
    """A schema with the routes that vLLM answers: `openapi_schema` adds the bodies we take."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        if not route.ours:
            paths.setdefault(route.path, {})[route.method.lower()] = {}
    return {"paths": paths}


def _route(route: Route, paths: Mapping[str, Any]) -> tuple[str, str, str]:
    path = route.path.replace("*", "{id}")
    told = paths.get(path, {}).get(route.method.lower(), {}).get("summary")
    name = f"{route.method} {path}"
    return code(name), told or _ABOUT[name], f"*{route.access.name.lower()}*"


def _queries(paths: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    found = []
    for path, operations in paths.items():
        for method, operation in operations.items():
            for entry in operation.get("parameters", ()):
                if entry["in"] == "query":
                    needed = entry.get("required", False)
                    default = "required" if needed else _default(entry["schema"])
                    kind, route = kind_of(entry["schema"]), code(f"{method.upper()} {path}")
                    row = (code(entry["name"]), kind, default, entry["description"])
                    found.append((route, *row))
    return found


def _bodies(paths: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for path, operations in paths.items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            for media_type, body in content.items():
                is_json = media_type == "application/json"
                kind = kind_of(body["schema"]) if is_json else f"bytes, {code(media_type)}"
                found.append((code(f"{method.upper()} {path}"), kind))
    return found


def _object(name: str, schema: Mapping[str, Any], docs: Mapping[str, Mapping[str, str]]) -> str:
    said = schema.get("description", "")
    if "properties" not in schema:
        return document(f"### {name}", prose(said), kind_of(schema) + ".")
    return document(f"### {name}", prose(said), fields(schema, docs.get(name, {})))


def fields(schema: Mapping[str, Any], docs: Mapping[str, str]) -> str:
    """The fields of an object as a table; ``docs`` are by the names of the class's attributes."""
    needed = set(schema.get("required", ()))
    said = {**docs, "schema": docs.get("json_schema", "")}
    rows = []
    for name, field in schema["properties"].items():
        default = "required" if name in needed else _default(field)
        told = field.get("description") or said.get(name, "")
        rows.append((code(name), kind_of(field), default, prose(told)))
    return table(("field", "type", "default", ""), rows)


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    return "" if value is None else code(json.dumps(value))


def kind_of(schema: Mapping[str, Any]) -> str:
    """The type of a value, in words."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(json.dumps(each)) for each in schema["enum"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            kinds = [kind_of(each) for each in schema[several] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {kind_of(schema.get('items', {}))}{_range(schema)}"
    return f"{kind}{_range(schema)}"


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "minLength": "{} or more characters",
        "maxLength": "at most {} characters",
        "minItems": "at least {}",
        "maxItems": "at most {}",
        "pattern": "like `{}`",
    }
    told = [said.format(schema[name]) for name, said in words.items() if name in schema]
    return "".join(f", {each}" for each in told if "|" not in each)
