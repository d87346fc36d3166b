"""RTSP messages and RTP packets on one TCP connection, with a bound on everything read."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from headstart.errors import SourceError
from headstart.live.sources.tcp_line import Flow

MAX_HEAD_BYTES = 16 << 10
MAX_BODY_BYTES = 64 << 10
MAX_LINE_ENDS = 64
"""In bytes, before a message. Cameras send a few to keep a connection alive."""
_RECEIVE_BYTES = 1 << 16


@dataclass(frozen=True)
class Packet:
    """Bytes of one interleaved channel."""

    channel: int
    content: bytes


@dataclass(frozen=True)
class Message:
    """A response, or a request of the camera's; names of headers are in lower case."""

    first_line: str
    headers: Mapping[str, str]
    challenges: tuple[str, ...]
    """Every ``WWW-Authenticate``; there may be several."""
    body: str

    @property
    def status(self) -> int | None:
        words = self.first_line.split()
        is_response = len(words) > 1 and words[0].startswith("RTSP/") and words[1].isdecimal()
        return int(words[1][:3]) if is_response else None


class Wire:
    """Sends requests; reads one message or packet at a time."""

    def __init__(self, sock: socket.socket, flow: Flow) -> None:
        self._socket, self._flow = sock, flow
        self._buffer = bytearray()

    def send(self, method: str, url: str, headers: Mapping[str, str]) -> None:
        """Send a request, which has no body."""
        lines = [f"{method} {url} RTSP/1.0", *(f"{key}: {value}" for key, value in headers.items())]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())

    def receive(self) -> Message | Packet:
        """The next message or packet. Raises `SourceError` where it is neither, or too long."""
        for _ in range(MAX_LINE_ENDS):
            self._fill(4)
            if self._buffer[0] not in b"\r\n":
                break
            del self._buffer[0]
        else:
            raise SourceError("the camera sends empty lines without end; restart it")
        # A dollar begins a packet among the messages: RFC 2326, section 10.12.
        if self._buffer[:1] == b"$":
            channel, length = self._buffer[1], int.from_bytes(self._buffer[2:4], "big")
            return Packet(channel, self._take(4 + length)[4:])
        return self._message()

    def _message(self) -> Message:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise SourceError("what answers there does not speak RTSP; check the address")
            self._fill(len(self._buffer) + 1)
        first_line, *lines = self._take(end + 4).decode("utf-8", "replace").strip().split("\r\n")
        pairs = [(name.strip().lower(), value.strip()) for name, _, value in map(_split, lines)]
        headers = dict(pairs)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 8 or int(length) > MAX_BODY_BYTES:
            raise SourceError("the camera states a length that cannot be; restart it")
        body = self._take(int(length)).decode("utf-8", "replace")
        challenges = tuple(value for name, value in pairs if name == "www-authenticate")
        return Message(first_line, headers, challenges, body)

    def _take(self, num_bytes: int) -> bytes:
        self._fill(num_bytes)
        taken = bytes(self._buffer[:num_bytes])
        del self._buffer[:num_bytes]
        return taken

    def _fill(self, num_bytes: int) -> None:
        while len(self._buffer) < num_bytes:
            received = self._socket.recv(_RECEIVE_BYTES)
            if not received:
                raise SourceError("the camera closed the connection; see whether it runs")
            self._buffer += received
            self._flow.passed(len(received))


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")
