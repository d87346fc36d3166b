"""The OpenAPI schema of what is open: vLLM's routes with the bodies that are taken, and ours."""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from headstart.serve.bodies.routes import BODIES
from headstart.serve.guard import ROUTES, UPLOADS

_REFERENCES = "#/components/schemas/"
_TAKEN = "Taken."
"""Begins the names of our schemas, apart from vLLM's, some of which are named alike."""
_ERROR = {"description": "Refused; the message says what to do."}


def open_schema(whole: dict[str, Any]) -> dict[str, Any]:
    """Of vLLM's schema the routes that are open, each with the body that is taken there."""
    bodies, taken = _taken()
    paths: dict[str, Any] = {}
    for route in ROUTES:
        operation = whole.get("paths", {}).get(route.path, {}).get(route.method.lower())
        if operation is None or route.ours:
            continue
        refusals = dict.fromkeys(("400", "401", "403", "404", "413", "429", "503"), _ERROR)
        operation = {**operation, "responses": {**refusals, **operation.get("responses", {})}}
        if route.path in bodies:
            content = {"application/json": {"schema": bodies[route.path]}}
            operation["requestBody"] = {"required": True, "content": content}
            # vLLM's own, among them headers that do not reach it.
            operation.pop("parameters", None)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    paths |= _our_paths()
    schemas = {**whole.get("components", {}).get("schemas", {}), **taken}
    return {
        "openapi": whole.get("openapi", "3.1.0"),
        "info": {"title": "headstart", "version": whole.get("info", {}).get("version", "")},
        "paths": paths,
        "components": {"schemas": _reached(paths, schemas)},
    }


def _taken() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each route's body, and those that they refer to."""
    bodies, shared = TypeAdapter.json_schemas(
        [(path, "validation", adapter) for path, adapter in BODIES.items()],
        ref_template=_REFERENCES + _TAKEN + "{model}",
    )
    named = {_TAKEN + name: schema for name, schema in shared.get("$defs", {}).items()}
    return {path: schema for (path, _), schema in bodies.items()}, named


def _reached(paths: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas that open routes use. vLLM's bodies and closed routes are nobody's business."""
    found: dict[str, Any] = {}
    waiting: list[Any] = [paths]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found and name in schemas:
                found[name] = schemas[name]
                waiting.append(schemas[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            reference = item.get("$ref")
            if isinstance(reference, str):
                yield reference.removeprefix(_REFERENCES)
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _our_paths() -> dict[str, Any]:
    json_answer = {"description": "Done.", "content": {"application/json": {}}}
    return {
        "/ready": {
            "get": {
                "summary": "Whether this server takes requests now.",
                "responses": {"200": json_answer, "503": json_answer},
            }
        },
        UPLOADS: {
            "post": {
                "summary": "Keep a recording of events, to name it in requests.",
                "parameters": [{"name": "format", "in": "query", "schema": {"type": "string"}}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/octet-stream": {
                            "schema": {"type": "string", "format": "binary"}
                        }
                    },
                },
                "responses": {"201": json_answer, "400": _ERROR, "413": _ERROR, "429": _ERROR},
            }
        },
        f"{UPLOADS}/{{id}}": {
            "delete": {
                "summary": "Forget an upload.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {"200": json_answer, "404": _ERROR},
            }
        },
    }
