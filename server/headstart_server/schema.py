"""The OpenAPI schema of this server's routes, with the bodies that the gateway accepts."""

from typing import Any

from pydantic import TypeAdapter

from headstart_server.bodies.routes import BODIES
from headstart_server.live.messages import Registration
from headstart_server.memory.routes import DEFAULT_LISTED, MAX_LISTED
from headstart_server.routes import (
    CAMERAS,
    MEMORY,
    MEMORY_EXPORT,
    MEMORY_IMPORT,
    ROUTES,
    UPLOADS,
)

_REFERENCES = "#/components/schemas/"
_PREFIX = "Taken."
"""Of the names of our schemas; some of vLLM's have the same names."""
_ERROR = {"description": "Refused; the message says what to do."}


def openapi_schema(whole: dict[str, Any]) -> dict[str, Any]:
    """Reduce vLLM's schema to our routes, with our bodies in place of vLLM's."""
    bodies, named = _body_schemas()
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
            # Some of vLLM's parameters are headers that do not reach it.
            operation.pop("parameters", None)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    paths |= _our_paths() | _memory_paths() | _camera_paths(bodies[CAMERAS])
    schemas = {**whole.get("components", {}).get("schemas", {}), **named}
    return {
        "openapi": whole.get("openapi", "3.1.0"),
        "info": {"title": "headstart", "version": whole.get("info", {}).get("version", "")},
        "paths": paths,
        "components": {"schemas": _reached(paths, schemas)},
    }


def _body_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each route's body, and the schemas that those refer to."""
    taken: dict[str, TypeAdapter[Any]] = {**BODIES, CAMERAS: TypeAdapter(Registration)}
    bodies, shared = TypeAdapter.json_schemas(
        [(path, "validation", adapter) for path, adapter in taken.items()],
        ref_template=_REFERENCES + _PREFIX + "{model}",
    )
    named = {_PREFIX + name: schema for name, schema in shared.get("$defs", {}).items()}
    return {path: schema for (path, _), schema in bodies.items()}, named


def _reached(paths: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas that these paths refer to, directly or through others."""
    found: dict[str, Any] = {}
    waiting: list[Any] = [paths]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
            name = str(item.get("$ref", "")).removeprefix(_REFERENCES)
            if name in schemas and name not in found:
                found[name] = schemas[name]
                waiting.append(schemas[name])
    return found


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
                "parameters": [
                    {
                        "name": "format",
                        "in": "query",
                        "description": "Of the recording, where its bytes do not say it.",
                        "schema": {"type": "string"},
                    }
                ],
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


def _memory_paths() -> dict[str, Any]:
    """The routes of what is remembered of a tenant."""
    one = {
        "name": "stream",
        "in": "query",
        "description": "The stream's name.",
        "required": True,
        "schema": {"type": "string"},
    }
    maybe = {**one, "required": False}
    every = {
        "name": "all",
        "in": "query",
        "description": "`true` for all of your streams, in place of a name.",
        "schema": {"type": "boolean"},
    }
    numbers = {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED}
    page = [
        {
            "name": "limit",
            "in": "query",
            "description": "How many streams to list, in the order of their names.",
            "schema": numbers,
        },
        {
            "name": "cursor",
            "in": "query",
            "description": "What the answer before gave as its cursor: the streams after those.",
            "schema": {"type": "string"},
        },
    ]
    data = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    refusals = dict.fromkeys(("400", "401", "403", "404", "429", "501", "503"), _ERROR)

    def operation(summary: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        done = {"description": "Done.", "content": content}
        return {"summary": summary, **more, "responses": {"200": done, **refusals}}

    json_content: dict[str, Any] = {"application/json": {}}
    return {
        MEMORY: {
            "get": operation(
                "What is remembered of each of your streams.", json_content, parameters=page
            ),
            "delete": operation(
                "Forget a stream, or all of them.", json_content, parameters=[maybe, every]
            ),
        },
        MEMORY_EXPORT: {
            "get": operation("A stream's memory, sealed.", data, parameters=[one]),
        },
        MEMORY_IMPORT: {
            "post": operation(
                "Have a stream remember what a sealed memory of yours holds.",
                json_content,
                parameters=[one],
                requestBody={"required": True, "content": data},
            ),
        },
    }


def _camera_paths(body: dict[str, Any]) -> dict[str, Any]:
    """The routes of cameras that the server reads."""
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    last = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}

    def operation(summary: str, done: int, media_type: str, **more: Any) -> dict[str, Any]:
        refusals = dict.fromkeys(("400", "401", "403", "404", "429", "501", "503"), _ERROR)
        answer = {"description": "Done.", "content": {media_type: {}}}
        return {"summary": summary, **more, "responses": {str(done): answer, **refusals}}

    def of_camera(summary: str, media_type: str, *more: dict[str, Any]) -> dict[str, Any]:
        return operation(summary, 200, media_type, parameters=[id, *more])

    taken = {"required": True, "content": {"application/json": {"schema": body}}}
    answers = "Messages of a camera as they come, the answers after Last-Event-ID first."
    return {
        CAMERAS: {
            "get": operation("Your cameras that the server reads.", 200, "application/json"),
            "post": operation(
                "Have the server read a camera.", 201, "application/json", requestBody=taken
            ),
        },
        f"{CAMERAS}/{{id}}": {
            "get": of_camera("The state of a camera.", "application/json"),
            "delete": of_camera("End a camera.", "application/json"),
        },
        f"{CAMERAS}/{{id}}/picture": {"get": of_camera("Its newest picture.", "image/jpeg")},
        f"{CAMERAS}/{{id}}/answers": {"get": of_camera(answers, "text/event-stream", last)},
    }
