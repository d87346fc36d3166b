"""A server that redirects gets no client to send its key elsewhere."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headstart.errors import LiveError, ServerRefusedError
from headstart_client.live_client import address_of, connect_to
from headstart_client.memory_client import MemoryClient


class Redirecting(BaseHTTPRequestHandler):
    """Sends everybody to another host, and notes who came there."""

    def do_GET(self):
        self.server.keys.append((self.headers["host"], self.headers["authorization"]))
        self.send_response(307)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    server.keys = []
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_key_is_sent_to_the_server_that_was_named_and_to_no_other(server):
    here = f"127.0.0.1:{server.server_port}"
    with pytest.raises(ServerRefusedError, match="localhost"):
        MemoryClient(f"http://{here}", "sk-memory").page()
    with pytest.raises(LiveError):
        connect_to(address_of(f"http://{here}"), "sk-live", "front")
    assert server.keys == [(here, "Bearer sk-memory"), (here, "Bearer sk-live")]
