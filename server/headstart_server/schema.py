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


_JSON: dict[str, Any] = {"application/json": {}}
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_REFUSALS = (400, 401, 403, 404, 429, 501, 503)


def _operation(
    summary: str,
    refusals: tuple[int, ...] = _REFUSALS,
    done: int = 200,
    content: dict[str, Any] = _JSON,
    **more: Any,
) -> dict[str, Any]:
    answers: dict[str, Any] = {str(done): {"description": "Done.", "content": content}}
    answers |= {str(status): _ERROR for status in refusals}
    return {"summary": summary, **more, "responses": answers}


def _parameter(
    name: str, place: str, type: str = "string", description: str = "", **more: Any
) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {"name": name, "in": place, **told, **more, "schema": {"type": type}}


def _our_paths() -> dict[str, Any]:
    ready = _operation("Whether this server takes requests now.", ())
    ready["responses"]["503"] = ready["responses"]["200"]
    kind = "Of the recording, where its bytes do not say it."
    id = _parameter("id", "path", required=True)
    keep = _operation(
        "Keep a recording of events, to name it in requests.",
        (400, 413, 429),
        201,
        parameters=[_parameter("format", "query", description=kind)],
        requestBody={"required": True, "content": _FILE},
    )
    forget = _operation("Forget an upload.", (404,), parameters=[id])
    return {
        "/ready": {"get": ready},
        UPLOADS: {"post": keep},
        f"{UPLOADS}/{{id}}": {"delete": forget},
    }


def _memory_paths() -> dict[str, Any]:
    maybe = _parameter("stream", "query", description="The stream's name.", required=False)
    one = {**maybe, "required": True}
    every = _parameter(
        "all", "query", "boolean", "`true` for all of your streams, in place of a name."
    )
    limit = _parameter(
        "limit", "query", "integer", "How many streams to list, in the order of their names."
    )
    limit["schema"] |= {"minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED}
    after = "What the answer before gave as its cursor: the streams after those."
    cursor = _parameter("cursor", "query", description=after)
    listing = "What is remembered of each of your streams."
    bring = "Have a stream remember what a sealed memory of yours holds."
    export = _operation("A stream's memory, sealed.", content=_FILE, parameters=[one])
    return {
        MEMORY: {
            "get": _operation(listing, parameters=[limit, cursor]),
            "delete": _operation("Forget a stream, or all of them.", parameters=[maybe, every]),
        },
        MEMORY_EXPORT: {"get": export},
        MEMORY_IMPORT: {
            "post": _operation(
                bring,
                parameters=[one],
                requestBody={"required": True, "content": _FILE},
            ),
        },
    }


def _camera_paths(body: dict[str, Any]) -> dict[str, Any]:
    """The routes of cameras that the server reads."""
    last = _parameter("Last-Event-ID", "header")

    def of_camera(summary: str, media_type: str, *more: dict[str, Any]) -> dict[str, Any]:
        parameters = [_parameter("id", "path", required=True), *more]
        return _operation(summary, content={media_type: {}}, parameters=parameters)

    taken = {"required": True, "content": {"application/json": {"schema": body}}}
    answers = "Messages of a camera as they come, the answers after Last-Event-ID first."
    return {
        CAMERAS: {
            "get": _operation("Your cameras that the server reads."),
            "post": _operation("Have the server read a camera.", done=201, requestBody=taken),
        },
        f"{CAMERAS}/{{id}}": {
            "get": of_camera("The state of a camera.", "application/json"),
            "delete": of_camera("End a camera.", "application/json"),
        },
        f"{CAMERAS}/{{id}}/picture": {"get": of_camera("Its newest picture.", "image/jpeg")},
        f"{CAMERAS}/{{id}}/answers": {"get": of_camera(answers, "text/event-stream", last)},
    }
