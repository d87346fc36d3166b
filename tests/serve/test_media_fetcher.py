"""Fetching from hosts that the operator opened: a real HTTP server on this machine."""

import asyncio
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headstart_server.limits import Limits
from headstart_server.media.fetcher import MediaFetcher
from headstart_server.refusal import RefusedError
from headstart_server.settings import Settings
from headstart_server.uploads import Uploads

LIMITS = Limits(max_media_file_bytes=1000, decode_s=3.0)


class Camera(BaseHTTPRequestHandler):
    """Serves another picture each time, redirects, sends too much, or never responds."""

    shown = 0

    def do_GET(self) -> None:
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "/latest.jpg")
            self.end_headers()
            return
        if self.path == "/silent":
            self.server.silence.wait(120)
        Camera.shown += 1
        content = b"x" * 2000 if self.path == "/large" else b"picture %d" % Camera.shown
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()  # no length: it ends when the connection does
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Not into the tests' output."""


@pytest.fixture(scope="module")
def camera() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    server.silence = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.silence.set()
    server.shutdown()


def fetched(url: str, *domains: str) -> bytes:
    settings = Settings(open=True, limits=LIMITS, media_domains=domains)
    return asyncio.run(MediaFetcher(settings, Uploads(LIMITS)).media(url)).content


def refusal(url: str, *domains: str) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        fetched(url, *domains)
    return caught.value


def test_an_address_is_fetched_anew_each_time(camera):
    first, second = (fetched(f"{camera}/latest.jpg", "127.0.0.1") for _ in range(2))
    assert first.startswith(b"picture")
    assert second.startswith(b"picture")
    assert first != second


def test_a_host_that_is_not_open_is_not_contacted(camera):
    before = Camera.shown
    assert refusal(f"{camera}/latest.jpg").status == HTTPStatus.FORBIDDEN
    assert refusal(f"{camera}/latest.jpg", "localhost").status == HTTPStatus.FORBIDDEN
    assert Camera.shown == before


@pytest.mark.parametrize(
    ("path", "said"),
    [("elsewhere", "302"), ("missing", "404"), ("large", "1000 bytes"), ("silent", "not be read")],
)
def test_redirects_errors_large_and_slow_responses_are_refused(camera, path, said):
    found = refusal(f"{camera}/{path}", "127.0.0.1")
    assert found.status == HTTPStatus.BAD_REQUEST
    assert said in found.message
