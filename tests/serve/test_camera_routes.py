"""The routes of registered cameras, without an engine: whose pages, how long, how many readers."""

import asyncio
import json

import pytest

from headstart_client.wire import CloseCode
from headstart_server.access_log import AccessLog
from headstart_server.gateway import Gateway
from headstart_server.limits import Limits
from headstart_server.routes import CAMERAS, find_route
from headstart_server.settings import Settings
from tests.serve.gateways import gateway_of
from tests.serve.test_answer_stream import Client, Listened, listening
from tests.serve.test_gateway import Answers
from tests.turned_loop import run_turned, turn


class Registry:
    """In place of the server's: one camera for everybody."""

    def __init__(self) -> None:
        self.camera = Listened()

    def find(self, tenant: str, id: str) -> Listened:
        return self.camera


def gateway(tmp_path, registry: Registry | None, **limits) -> Gateway:
    settings = Settings(open=True, limits=Limits(min_free_bytes=1, **limits))
    return gateway_of(settings, AccessLog(tmp_path / "log"), Answers(), registry)


def asking(made: Gateway, client: Client, method: str, path: str, **headers: str):
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    return asyncio.ensure_future(made(scope, client.receive, client.send))


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://evil.example.org", "127.0.0.1:8000", 403),
        ("http://evil.example.org:8000", "evil.example.org:8000", 421),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", 501),  # past it: there is no video here
        ("", "127.0.0.1:8000", 501),
    ],
)
def test_pages_of_other_sites_may_not_use_an_open_server(tmp_path, origin, host, status):
    async def run() -> None:
        made = gateway(tmp_path, None)
        for method, path in (("GET", CAMERAS), ("DELETE", f"{CAMERAS}/x")):
            client = Client()
            await asking(made, client, method, path, origin=origin, host=host)
            assert json.loads(b"".join(client.read))["error"]["code"] == status

    asyncio.run(run())


def test_a_stream_outlasts_the_time_of_a_request_and_is_not_in_flight(tmp_path):
    async def run() -> None:
        registry, client = Registry(), Client()
        made = gateway(tmp_path, registry)
        served = asking(made, client, "GET", f"{CAMERAS}/x/answers", **{"last-event-id": "3"})
        queue = await listening(registry.camera)
        assert registry.camera.after == 3
        await turn(10 * Limits().request_s)
        assert not served.done()
        assert made.admission.requests.num == 0
        queue.send({"type": "answer", "number": 4})
        queue.finish(CloseCode.ENDED)
        await served
        assert [event["id"] for event in client.events()] == ["4"]

    run_turned(run())


def test_a_tenant_has_so_many_readers(tmp_path):
    async def run() -> None:
        registry = Registry()
        made = gateway(tmp_path, registry, max_tenant_live=2)
        readers = [Client() for _ in range(5)]
        served = [asking(made, one, "GET", f"{CAMERAS}/x/answers") for one in readers]
        done, open_ = await asyncio.wait(served, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(open_)) == (1, 4)
        assert json.loads(b"".join(readers[-1].read))["error"]["code"] == 429
        for one in readers:
            one.left.set()
        await asyncio.gather(*open_)
        late = Client()
        served = [asking(made, late, "GET", f"{CAMERAS}/x/answers")]
        await asyncio.sleep(0)
        while not late.headers:
            await asyncio.sleep(0)
        late.left.set()
        await asyncio.gather(*served)
        assert late.headers[b"content-type"].startswith(b"text/event-stream")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("GET", "/v1/cameras", "/v1/cameras"),
        ("GET", "/v1/cameras/x", "/v1/cameras/*"),
        ("GET", "/v1/cameras/x/answers", "/v1/cameras/*/answers"),
        ("HEAD", "/v1/cameras/x/picture", "/v1/cameras/*/picture"),
        ("GET", "/v1/cameras/", None),
        ("GET", "/v1/cameras//answers", None),
        ("GET", "/v1/cameras/x/y/answers", None),
        ("GET", "/v1/cameras/x/other", None),
        ("POST", "/v1/cameras/x", None),
        ("DELETE", "/v1/cameras", None),
    ],
)
def test_a_star_is_one_part_of_a_path(method, path, route):
    found = find_route(method, path)
    assert (None if found is None else found.path) == route
