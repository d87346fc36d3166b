"""The OpenAPI schema of what is open: vLLM's own for its routes, and ours beside it."""

from typing import Any

from headstart.serve.guard import CHAT, ROUTES, UPLOADS

_EVENT_PART: dict[str, Any] = {
    "type": "object",
    "description": "One more kind of message content: a window of an event camera's recording.",
    "required": ["type", "event_url"],
    "properties": {
        "type": {"const": "event_url"},
        "event_url": {
            "type": "object",
            "required": ["url"],
            "additionalProperties": False,
            "properties": {
                "url": {
                    "type": "string",
                    "description": "A data URL, the id of an upload, or a file URL where open.",
                },
                "start_us": {"type": "integer"},
                "stop_us": {"type": "integer"},
                "sensor": {"type": "string", "examples": ["640x480"]},
                "format": {"enum": ["npy", "npz", "h5", "aedat4", "raw", "dat", "csv"]},
            },
        },
    },
}
_WISHES: dict[str, Any] = {
    "type": "object",
    "description": "What headstart is asked for; left out, the answer is vLLM's own to the letter.",
    "additionalProperties": False,
    "properties": {
        "stream": {"type": "string", "minLength": 1, "maxLength": 128},
        "preview": {"type": "boolean", "default": False},
        "timeline": {"type": "boolean", "default": False},
    },
}
_PREDICTION: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "The answer that is expected. It becomes a draft; see OpenAI's reference.",
    "required": ["type", "content"],
    "properties": {
        "type": {"const": "content"},
        "content": {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
                    },
                },
            ]
        },
    },
}
_ERROR = {"description": "Refused; the message says what to do."}


def open_schema(whole: dict[str, Any]) -> dict[str, Any]:
    """Of vLLM's schema the routes that are open, with what we add to them."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        operation = whole.get("paths", {}).get(route.path, {}).get(route.method.lower())
        if operation is not None and not route.ours:
            refusals = dict.fromkeys(("400", "401", "403", "404", "413", "429", "503"), _ERROR)
            responses = {**refusals, **operation.get("responses", {})}
            paths.setdefault(route.path, {})[route.method.lower()] = {
                **operation,
                "responses": responses,
            }
    components = {**whole.get("components", {})}
    schemas = {
        **components.get("schemas", {}),
        "HeadstartWishes": _WISHES,
        "Prediction": _PREDICTION,
        "EventPart": _EVENT_PART,
    }
    if request := schemas.get("ChatCompletionRequest"):
        ours = {
            "headstart": {"$ref": "#/components/schemas/HeadstartWishes"},
            "prediction": {"$ref": "#/components/schemas/Prediction"},
        }
        schemas["ChatCompletionRequest"] = {
            **request,
            "properties": {**request.get("properties", {}), **ours},
        }
    if CHAT in paths:
        paths[CHAT]["post"] = {
            **paths[CHAT]["post"],
            "description": "vLLM's own. Messages also take the content part EventPart.",
        }
    return {
        **whole,
        "info": {"title": "headstart", "version": whole.get("info", {}).get("version", "")},
        "paths": {**paths, **_our_paths()},
        "components": {**components, "schemas": schemas},
    }


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
