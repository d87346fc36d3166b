"""A stream that is named in the address, for clients that let a person set nothing else.

Every OpenAI-compatible client takes a base URL. With ``http://HOST/streams/front-door/v1`` all that
it asks is about the stream ``front-door``.
"""

import re

from headstart_server.asgi import Scope

_ADDRESS = re.compile(r"/streams/([^/]{1,128})(/v1/.+)")


def without_stream(scope: Scope) -> tuple[Scope, str]:
    """The request as if its address named no stream, and the stream's name; empty if none."""
    found = _ADDRESS.fullmatch(scope["path"])
    if found is None:
        return scope, ""
    name, path = found.groups()
    return {**scope, "path": path, "raw_path": path.encode()}, name
