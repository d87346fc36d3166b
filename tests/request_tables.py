"""What an object still knows of requests that are over, wherever it keeps it.

Tables are found by walking attributes, containers and bound methods of everything that is
headstart's or vLLM's, so that a table which is added later is looked into by itself.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Set
from types import MethodType
from typing import Any

from vllm.v1.request import Request

WALKED = ("headstart.", "vllm.v1.", "tests.")
"""Packages whose objects are looked into."""


def traces(owner: Any, names: Collection[str]) -> list[str]:
    """The places below ``owner`` that hold one of these names or a request, each once."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    left: deque[tuple[str, Any]] = deque([(type(owner).__name__, owner)])
    while left:
        path, one = left.popleft()
        if isinstance(one, Request) or (isinstance(one, str) and one in names):
            found[path] = None
        elif not isinstance(one, str | bytes | int | float | None) and id(one) not in seen:
            seen.add(id(one))
            left.extend((path + below, part) for below, part in _parts(one))
    return list(found)


def _parts(one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, MethodType):
        yield ".__self__", one.__self__
    elif isinstance(one, Mapping):
        for key, value in one.items():
            yield "[key]", key
            yield "[]", value
    elif isinstance(one, list | tuple | deque | Set):
        yield from (("[]", part) for part in one)
    elif type(one).__module__.startswith(WALKED):
        yield from ((f".{name}", part) for name, part in getattr(one, "__dict__", {}).items())
        for kind in type(one).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(one, name):
                    yield f".{name}", getattr(one, name)
