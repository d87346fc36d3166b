"""The routes of this server. Any other route, also of vLLM's, is not found.

Among vLLM's routes left out: loading adapters, profiling, scaling, sleeping, resetting caches, and
remote calls into the workers. A server started with ``--open`` asks for no keys on any route.

An address may name a stream, for clients that let a person set nothing else but a base URL: of
``http://HOST/streams/front-door/v1`` all that a client asks is about the stream ``front-door``.
"""

import re
from dataclasses import dataclass
from enum import Enum

from headstart_server.asgi import Scope

_ADDRESS = re.compile(r"/streams/([^/]{1,128})(/v1/.+)")


class Access(Enum):
    """What a request needs to reach a route."""

    PUBLIC = "nothing"
    AUTHENTICATED = "a key, of a tenant or an operator"
    TENANT = "a tenant's key; it counts neither as in flight nor against rate limits"
    ADMITTED = "a tenant's key, and admission: it counts as in flight and against rate limits"


@dataclass(frozen=True)
class Route:
    """One route. A ``*`` stands for one part of the path."""

    method: str
    path: str
    access: Access
    ours: bool = False
    """Whether the gateway answers it, not vLLM."""

    def matches(self, method: str, path: str) -> bool:
        if method != self.method and not (method == "HEAD" and self.method == "GET"):
            return False
        parts, own_parts = path.split("/"), self.path.split("/")
        return len(parts) == len(own_parts) and all(
            part == own or (own == "*" and part != "")
            for part, own in zip(parts, own_parts, strict=True)
        )


CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MODELS = "/v1/models"
UPLOADS = "/v1/headstart/events"
CAMERAS = "/v1/cameras"
CAMERA_ANSWERS = f"{CAMERAS}/*/answers"
CAMERA_PICTURE = f"{CAMERAS}/*/picture"
MEMORY = "/v1/headstart/memory"
MEMORY_EXPORT = f"{MEMORY}/export"
MEMORY_IMPORT = f"{MEMORY}/import"
DEMO = "/demo"
METRICS = "/metrics"
PROBES = ("/health", "/ready")
"""What a supervisor asks, perhaps from behind the same proxy as everybody."""

ROUTES = (
    Route("GET", "/", Access.PUBLIC, ours=True),
    Route("GET", "/live", Access.PUBLIC, ours=True),
    Route("GET", PROBES[0], Access.PUBLIC),
    Route("GET", PROBES[1], Access.PUBLIC, ours=True),
    Route("GET", METRICS, Access.AUTHENTICATED),
    Route("GET", "/version", Access.AUTHENTICATED),
    Route("GET", "/openapi.json", Access.PUBLIC, ours=True),
    Route("GET", DEMO, Access.AUTHENTICATED, ours=True),
    Route("GET", f"{DEMO}/*", Access.ADMITTED, ours=True),
    Route("GET", MODELS, Access.AUTHENTICATED),
    Route("POST", CHAT, Access.ADMITTED),
    Route("POST", COMPLETIONS, Access.ADMITTED),
    Route("POST", "/tokenize", Access.ADMITTED),
    Route("POST", "/detokenize", Access.ADMITTED),
    Route("POST", UPLOADS, Access.ADMITTED, ours=True),
    Route("GET", f"{UPLOADS}/*", Access.ADMITTED, ours=True),
    Route("DELETE", f"{UPLOADS}/*", Access.ADMITTED, ours=True),
    Route("GET", MEMORY, Access.ADMITTED, ours=True),
    Route("DELETE", MEMORY, Access.ADMITTED, ours=True),
    Route("GET", MEMORY_EXPORT, Access.ADMITTED, ours=True),
    Route("POST", MEMORY_IMPORT, Access.ADMITTED, ours=True),
    Route("POST", CAMERAS, Access.ADMITTED, ours=True),
    Route("GET", CAMERAS, Access.TENANT, ours=True),
    Route("GET", f"{CAMERAS}/*", Access.TENANT, ours=True),
    Route("DELETE", f"{CAMERAS}/*", Access.TENANT, ours=True),
    Route("GET", CAMERA_ANSWERS, Access.TENANT, ours=True),
    Route("GET", CAMERA_PICTURE, Access.ADMITTED, ours=True),
)


def find_route(method: str, path: str) -> Route | None:
    return next((route for route in ROUTES if route.matches(method, path)), None)


def methods_of(path: str) -> list[str]:
    return [route.method for route in ROUTES if route.matches(route.method, path)]


def without_stream(scope: Scope) -> tuple[Scope, str]:
    """The request as if its address named no stream, and the stream's name; empty if none."""
    found = _ADDRESS.fullmatch(scope["path"])
    if found is None:
        return scope, ""
    name, path = found.groups()
    return {**scope, "path": path, "raw_path": path.encode()}, name
