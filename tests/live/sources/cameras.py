"""An HTTP camera that a test scripts, connection by connection, byte by byte."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, int], None]
"""Serves one connection; the number says which one it is, from 0."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n"


class HttpCamera:
    """Listens on loopback and runs the script once for each connection."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/live.ts"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                name = f"test server {len(self.requests)}"
                threading.Thread(target=self._answer, args=(connection,), name=name).start()

    def stop(self) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(1 << 16)
            self.requests.append(request.decode())
            self._script(connection, len(self.requests) - 1)


@contextmanager
def http_camera(script: Script, port: int = 0) -> Iterator[HttpCamera]:
    camera = HttpCamera(script, port)
    thread = threading.Thread(target=camera.serve, name="test server")
    thread.start()
    try:
        yield camera
    finally:
        camera.stop()
        thread.join()


def send_slowly(connection: socket.socket, content: bytes, seconds: float) -> None:
    """Send bytes evenly over some time."""
    num_pieces = 50
    size = -(-len(content) // num_pieces)
    for start in range(0, len(content), size):
        connection.sendall(content[start : start + size])
        time.sleep(seconds / num_pieces)  # plays: the camera's pace


def wait_for_end(connection: socket.socket) -> None:
    """Hold the connection until the other side ends it."""
    while connection.recv(1 << 16):
        pass
