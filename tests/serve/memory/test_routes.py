"""What calls about memory cost their tenant, without an engine."""

import asyncio
import json

import pytest

from headstart_server.limits import Limits
from headstart_server.memory import routes
from headstart_server.memory.routes import BYTES_A_TOKEN, MemoryRoutes
from headstart_server.memory.seal import OpenedMemory
from headstart_server.memory.store import MemorySettings
from headstart_server.quota import MEMORY_CALLS_A_SECOND, MEMORY_CALLS_AT_ONCE, Quota
from headstart_server.refusal import RefusedError
from headstart_server.request_context import RequestContext
from headstart_server.routes import MEMORY, MEMORY_EXPORT, MEMORY_IMPORT, find_route
from headstart_server.settings import Settings
from tests.serve.memory.memories import FRONT, KEY, snapshot
from tests.serve.test_quota import Clock

TOKENS_PER_MINUTE = 600


class Kept:
    """In place of `MemoryStoreSync`: a stream of 400 tokens, and no other."""

    async def streams(self, tenant, after, max_streams):
        return [{"stream": FRONT.stream, "answers": 2, "bytes": 99}], None

    async def export(self, stream):
        return bytes(400 * BYTES_A_TOKEN)

    async def take(self, stream, data):
        return OpenedMemory(FRONT, 1.0, snapshot()), 400


class Tenant:
    """Calls the routes, at a time that stands still unless it is turned."""

    def __init__(self):
        keeping = MemorySettings(keys=(KEY,))
        limits = Limits(tenant_tokens_per_minute=TOKENS_PER_MINUTE)
        settings, self.clock = Settings(limits=limits, memory=keeping), Clock()
        self.quota = Quota(limits, self.clock)
        self._routes = MemoryRoutes(settings, self.quota, Kept())

    def call(self, method, path, query="stream=front"):
        said = []

        async def send(message):
            said.append(message)

        scope = {"headers": [], "query_string": query.encode()}
        context = RequestContext(scope, None, send, lambda: False, tenant="north")
        asyncio.run(self._routes.answer(context, find_route(method, path), b"sealed"))
        return said[0]["status"], b"".join(message.get("body", b"") for message in said)


@pytest.mark.parametrize(("method", "path"), [("POST", MEMORY_IMPORT), ("GET", MEMORY_EXPORT)])
def test_what_comes_in_or_goes_out_is_charged_as_tokens(method, path):
    tenant = Tenant()
    for _ in range(2):
        tenant.quota.admit("north")
        assert tenant.call(method, path)[0] == 200
    with pytest.raises(RefusedError, match="ask again in 21 s"):
        tenant.quota.admit("north")
    tenant.clock.now_s += 21
    tenant.quota.admit("north")
    tenant.quota.admit("south")


def test_whoever_calls_too_often_waits_before_an_engine_is_asked(monkeypatch):
    tenant, order = Tenant(), []

    async def sleep(wait_s):
        order.append(wait_s)

    async def streams(*given):
        order.append(given[2:])
        return [], None

    monkeypatch.setattr(routes.asyncio, "sleep", sleep)
    monkeypatch.setattr(Kept, "streams", streams)
    for _ in range(MEMORY_CALLS_AT_ONCE):
        assert tenant.quota.memory_wait_s("north") == 0
    turn, after = tenant.call("GET", MEMORY, "limit=7"), (None, 7)
    assert (turn[0], json.loads(turn[1])["cursor"]) == (200, None)
    assert order == [pytest.approx(1 / MEMORY_CALLS_A_SECOND), after]
