"""A video over HTTP: a camera's endless one, or a file's."""

import base64
import io
import socket
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.tcp_line import Flow, TcpLine

_CHUNK_BYTES = 1 << 16


class HttpStream:
    """A `ByteStream`. Redirections are not followed: they could lead anywhere."""

    def __init__(self, address: Address, silent_s: float, share: Share | None = None) -> None:
        self._address = address
        self._line = TcpLine(silent_s, share)
        self._num_missing: int | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether the server states a length, as it does for a file."""
        return self._num_missing is not None

    def chunks(self) -> Iterator[bytes]:
        address = self._address
        try:
            connection = HTTPConnection(address.host, address.port)
            sock = self._line.connect(address.host, address.port, tls=address.is_tls)
            connection.sock = _Socket(sock, self._line.flow)
            connection.request("GET", address.path, headers=self._headers())
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                raise SourceError(_refusal(response.status, response.headers.get("Location")))
            self._num_missing = response.length
            while chunk := response.read1(_CHUNK_BYTES):
                if self._num_missing is not None:
                    self._num_missing -= len(chunk)
                yield chunk
        except HTTPException as error:
            raise SourceError(
                f"the answer is no HTTP ({type(error).__name__}); check the address"
            ) from error
        finally:
            self._line.release()
        if self._num_missing != 0:
            raise SourceError("the connection was closed before the stream's end")

    def close(self) -> None:
        self._line.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Host": self._address.authority, "Accept": "*/*", "User-Agent": "headstart"}
        if self._address.user is not None:
            pair = f"{self._address.user}:{self._address.password}".encode()
            headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        return headers


class _Socket:
    """What `http.client` uses of a socket. All that is read is told, heads and lengths too."""

    def __init__(self, sock: socket.socket, flow: Flow) -> None:
        self._socket, self._flow = sock, flow
        self.sendall = sock.sendall

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._socket, self._flow), _CHUNK_BYTES)

    def close(self) -> None:
        """Whose line it is gives it back."""


class _Incoming(io.RawIOBase):
    def __init__(self, sock: socket.socket, flow: Flow) -> None:
        super().__init__()
        self._socket, self._flow = sock, flow

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        num_bytes = self._socket.recv_into(buffer)
        self._flow.passed(num_bytes)
        return num_bytes


def _refusal(status: int, location: str | None) -> str:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "it wants a name and a password: give http://NAME:PASSWORD@host/path"
    if status == HTTPStatus.NOT_FOUND:
        return "there is nothing at that address (404); the camera's manual has its paths"
    if location is not None:
        where = "".join(char for char in location[:200] if char.isprintable())
        return f"it redirects to {where}, which is not followed; give that address if you trust it"
    return f"it answers with {status}, not with a video; check the address"
