"""Which routes are open. vLLM has many more; what is not in this table does not exist here.

Among those left out: loading adapters, profiling, scaling, sleeping, resetting caches, remote
calls into the workers, and routes that would answer without a key. On a server that was opened to
everybody, nobody needs a key.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What stands in front of a route."""

    OPEN = "answers without a key"
    KEYED = "needs a key, a tenant's or an operator's"
    COUNTED = "needs a tenant's key and a place among the requests under way; its body is checked"


@dataclass(frozen=True)
class Route:
    """One open route. A trailing ``/*`` stands for one more part of the path."""

    method: str
    path: str
    kind: Kind
    ours: bool = False
    """Answered here, not by vLLM."""

    def matches(self, method: str, path: str) -> bool:
        """Whether a request is for it."""
        if method != self.method and not (method == "HEAD" and self.method == "GET"):
            return False
        if not self.path.endswith("/*"):
            return path == self.path
        start, _, part = path.rpartition("/")
        return start == self.path.removesuffix("/*") and bool(part)


CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MODELS = "/v1/models"
UPLOADS = "/v1/headstart/events"
DEMO = "/demo"
METRICS = "/metrics"

ROUTES = (
    Route("GET", "/", Kind.OPEN, ours=True),
    Route("GET", "/health", Kind.OPEN),
    Route("GET", "/ready", Kind.OPEN, ours=True),
    Route("GET", METRICS, Kind.KEYED),
    Route("GET", "/version", Kind.KEYED),
    Route("GET", "/openapi.json", Kind.OPEN, ours=True),
    Route("GET", DEMO, Kind.KEYED, ours=True),
    Route("GET", f"{DEMO}/*", Kind.COUNTED, ours=True),
    Route("GET", MODELS, Kind.KEYED),
    Route("POST", CHAT, Kind.COUNTED),
    Route("POST", COMPLETIONS, Kind.COUNTED),
    Route("POST", "/tokenize", Kind.COUNTED),
    Route("POST", "/detokenize", Kind.COUNTED),
    Route("POST", UPLOADS, Kind.COUNTED, ours=True),
    Route("GET", f"{UPLOADS}/*", Kind.COUNTED, ours=True),
    Route("DELETE", f"{UPLOADS}/*", Kind.COUNTED, ours=True),
)


def find_route(method: str, path: str) -> Route | None:
    """The open route a request is for; everything else is not found."""
    return next((route for route in ROUTES if route.matches(method, path)), None)


def other_methods(path: str) -> list[str]:
    """The methods an open path has; none if the path is not open."""
    return [route.method for route in ROUTES if route.matches(route.method, path)]
