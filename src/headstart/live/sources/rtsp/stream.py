"""A camera that speaks RTSP, its packets on the same TCP connection."""

import re
import time
from collections.abc import Iterator

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.rtsp import container
from headstart.live.sources.rtsp.description import VideoTrack
from headstart.live.sources.rtsp.login import Login
from headstart.live.sources.rtsp.pictures import Pictures
from headstart.live.sources.rtsp.wire import Message, Packet, Wire
from headstart.live.sources.tcp_line import TcpLine

DEFAULT_TIMEOUT_S = 60
"""A session that says nothing for so long is ended by the camera, unless it states another."""
_MAX_PACKETS_BEFORE_RESPONSE = 10_000
MAX_OTHERS = 1000
"""Messages and packets of other channels in a row. A camera sends a few, and then its video."""
_RTCP_BYE = 203
_NOT_FOUND, _UNAUTHORIZED, _NO_SUCH_TRANSPORT = 404, 401, 461


class RtspStream:
    """A `ByteStream`: the camera's pictures, still compressed, as a Matroska stream."""

    is_recorded = False

    def __init__(self, address: Address, silent_s: float, share: Share | None = None) -> None:
        self._address = address
        self._line = TcpLine(silent_s, share)

    def chunks(self) -> Iterator[bytes]:
        """Connect, and yield each picture as it comes."""
        address = self._address
        try:
            sock = self._line.connect(address.host, address.port, tls=address.is_tls)
            session = _Session(Wire(sock, self._line.flow), Login(address), str(address))
            track = session.play()
            yield container.head(track.codec)
            pictures = Pictures(track)
            for packet in session.packets():
                for time_us, content in pictures.take(packet):
                    yield container.picture(time_us, content)
        finally:
            self._line.release()

    def close(self) -> None:
        """End `chunks` soon."""
        self._line.close()


class _Session:
    """The requests of one session, in their order."""

    def __init__(self, wire: Wire, login: Login, url: str) -> None:
        self._wire, self._login, self._url = wire, login, url
        self._num_requests = 0
        self._session = ""
        self._ping_s = DEFAULT_TIMEOUT_S / 2
        self._channel = 0

    def play(self) -> VideoTrack:
        """Have the camera send its video."""
        described = self._ask("DESCRIBE", self._url, {"Accept": "application/sdp"})
        base = described.headers.get("content-base") or described.headers.get("content-location")
        track = VideoTrack.parse(described.body, base or self._url)
        transport = "RTP/AVP/TCP;unicast;interleaved=0-1"
        answer = self._ask("SETUP", track.url, {"Transport": transport})
        channels = re.search(r"interleaved=(\d{1,3})", answer.headers.get("transport", ""))
        self._channel = int(channels.group(1)) if channels else 0
        self._session, _, rest = answer.headers.get("session", "").partition(";")
        if stated := re.search(r"timeout=(\d{1,6})", rest):
            self._ping_s = max(1.0, int(stated.group(1)) / 2)
        self._ask("PLAY", base or self._url, {"Range": "npt=0.000-"})
        return track

    def packets(self) -> Iterator[bytes]:
        """The RTP packets of the video."""
        next_s = time.monotonic() + self._ping_s
        num_others = 0
        while num_others <= MAX_OTHERS:
            num_others += 1
            if time.monotonic() > next_s:
                # Whatever the camera answers comes among the packets, and is passed over.
                self._send("OPTIONS", self._url, {})
                next_s = time.monotonic() + self._ping_s
            match self._wire.receive():
                case Packet(channel, content) if channel == self._channel:
                    num_others = 0
                    yield content
                case Packet(channel, content) if channel == self._channel + 1:
                    if _says_bye(content):
                        raise SourceError("the camera ended the stream")
                case Message(first_line=first_line) if first_line.startswith("TEARDOWN"):
                    raise SourceError("the camera ended the stream")
        raise SourceError("the camera sends everything but its video; restart it")

    def _ask(self, method: str, url: str, headers: dict[str, str]) -> Message:
        for _ in range(2):
            self._send(method, url, headers)
            response = self._response()
            if response.status != _UNAUTHORIZED:
                break
            self._login.challenged(response.challenges)
        else:
            self._login.challenged(response.challenges)
        if response.status != 200:
            raise SourceError(_refusal(method, response.status))
        return response

    def _send(self, method: str, url: str, headers: dict[str, str]) -> None:
        self._num_requests += 1
        session = {"Session": self._session} if self._session else {}
        login = self._login.headers(method, url)
        own = {"CSeq": str(self._num_requests), "User-Agent": "headstart"}
        self._wire.send(method, url, {**own, **session, **login, **headers})

    def _response(self) -> Message:
        for _ in range(_MAX_PACKETS_BEFORE_RESPONSE):
            received = self._wire.receive()
            match received:
                case Message(headers=headers) if received.status is not None:
                    if headers.get("cseq") in (None, str(self._num_requests)):
                        return received
        raise SourceError("the camera does not answer; restart it")


def _says_bye(content: bytes) -> bool:
    """Whether one of the RTCP packets, which come several at once, says that the stream ends."""
    while len(content) >= 4:
        if content[1] == _RTCP_BYE:
            return True
        content = content[4 + 4 * int.from_bytes(content[2:4], "big") :]
    return False


def _refusal(method: str, status: int | None) -> str:
    if status == _NOT_FOUND:
        return "there is no stream of that name (404); the camera's manual has its paths"
    if status == _NO_SUCH_TRANSPORT:
        return "the camera sends by UDP only; allow RTP over TCP in its settings"
    return f"the camera answers {method} with {status}; check the address"
