"""A camera that speaks RTSP, its packets on the same TCP connection."""

import base64
import hashlib
import re
import secrets
import struct
import time
from collections.abc import Iterator, Sequence

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.rtsp.track import Pictures, VideoTrack
from headstart.live.sources.rtsp.wire import Message, Packet, Wire
from headstart.live.sources.tcp_line import TcpLine
from headstart.media.annex_b import Codec

DEFAULT_TIMEOUT_S = 60
"""A session that says nothing for so long is ended by the camera, unless it states another."""
_MAX_PACKETS_BEFORE_RESPONSE = 10_000
MAX_OTHERS = 1000
"""Messages and packets of other channels in a row. A camera sends a few, and then its video."""
_RTCP_BYE = 203
_NOT_FOUND, _UNAUTHORIZED, _NO_SUCH_TRANSPORT = 404, 401, 461
_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')
_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}
_CODEC_IDS = {Codec.H264: b"V_MPEG4/ISO/AVC", Codec.H265: b"V_MPEGH/ISO/HEVC"}
_WITHOUT_END = b"\x01" + b"\xff" * 7
_TRACK = b"\x81"
"""The number of the only track, written as a length is."""


class RtspStream:
    """A `ByteStream`: the camera's pictures, still compressed, as a Matroska stream, RFC 9559."""

    is_recorded = False

    def __init__(self, address: Address, silent_s: float, share: Share | None = None) -> None:
        self._address = address
        self._line = TcpLine(silent_s, share)

    def chunks(self) -> Iterator[bytes]:
        address = self._address
        try:
            sock = self._line.connect(address.host, address.port, tls=address.is_tls)
            session = _Session(Wire(sock, self._line.flow), Login(address), str(address))
            track = session.play()
            yield _head(track.codec)
            pictures = Pictures(track)
            for packet in session.packets():
                for time_us, content in pictures.take(packet):
                    yield _picture(time_us, content)
        finally:
            self._line.release()

    def close(self) -> None:
        self._line.close()


class Login:
    """Makes the ``Authorization`` of each request, once the camera has said how.

    Basic and Digest, RFC 7616.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._scheme = ""
        self._fields: dict[str, str] = {}
        self._num_uses = 0

    def challenged(self, challenges: Sequence[str]) -> None:
        """Take the camera's challenges; raises where none can be met."""
        if self._address.user is None or self._scheme:
            raise SourceError(
                "the camera wants a name and a password"
                + (", and not these" if self._scheme else "")
                + ": give rtsp://NAME:PASSWORD@host/path"
            )
        for challenge in sorted(challenges, key=lambda each: not each.lower().startswith("digest")):
            scheme, _, rest = challenge.partition(" ")
            fields = {key.lower(): quoted or bare for key, quoted, bare in _FIELD.findall(rest)}
            is_digest = scheme.lower() == "digest" and fields.get("algorithm", "MD5") in _HASHES
            if is_digest or scheme.lower() == "basic":
                self._scheme, self._fields = scheme.lower(), fields
                return
        raise SourceError("the camera wants a login of a kind that is not known; use Digest")

    def headers(self, method: str, url: str) -> dict[str, str]:
        """What a request carries; nothing before a challenge."""
        name, password = self._address.user, self._address.password
        if not self._scheme or name is None:
            return {}
        if self._scheme == "basic":
            pair = base64.b64encode(f"{name}:{password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {"Authorization": f"Digest {self._digest(name, password, method, url)}"}

    def _digest(self, name: str, password: str, method: str, url: str) -> str:
        fields = self._fields
        realm, nonce = fields.get("realm", ""), fields.get("nonce", "")
        algorithm = fields.get("algorithm", "MD5")

        def digest(text: str) -> str:
            return _HASHES[algorithm](text.encode()).hexdigest()

        secret, request = digest(f"{name}:{realm}:{password}"), digest(f"{method}:{url}")
        said = {"username": name, "realm": realm, "nonce": nonce, "uri": url}
        bare = {}
        if "auth" in fields.get("qop", "").split(","):
            self._num_uses += 1
            count, own = f"{self._num_uses:08x}", secrets.token_hex(8)
            said["cnonce"], bare = own, {"qop": "auth", "nc": count}
            said["response"] = digest(f"{secret}:{nonce}:{count}:{own}:auth:{request}")
        else:
            said["response"] = digest(f"{secret}:{nonce}:{request}")
        if "opaque" in fields:
            said["opaque"] = fields["opaque"]
        if "algorithm" in fields:
            bare["algorithm"] = algorithm
        quoted = [f'{key}="{value}"' for key, value in said.items()]
        return ", ".join([*quoted, *(f"{key}={value}" for key, value in bare.items())])


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


def _head(codec: Codec) -> bytes:
    """What the stream begins with. Its clock counts microseconds; the decoder finds the size."""
    ebml = _element(0x1A45DFA3, _element(0x4282, b"matroska"))
    info = _element(0x1549A966, _element(0x2AD7B1, _number(1000)))
    video = _element(0xE0, _element(0xB0, _number(16)) + _element(0xBA, _number(16)))
    track = (
        _element(0xD7, _number(1))
        + _element(0x73C5, _number(1))
        + _element(0x83, _number(1))
        + _element(0x86, _CODEC_IDS[codec])
        + video
    )
    tracks = _element(0x1654AE6B, _element(0xAE, track))
    return ebml + b"\x18\x53\x80\x67" + _WITHOUT_END + info + tracks


def _picture(time_us: int, content: bytes) -> bytes:
    block = _element(0xA3, _TRACK + b"\0\0\0" + content)
    return _element(0x1F43B675, _element(0xE7, _number(max(0, time_us))) + block)


def _element(number: int, content: bytes) -> bytes:
    name = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return name + struct.pack(">Q", 1 << 56 | len(content)) + content


def _number(value: int) -> bytes:
    return struct.pack(">Q", value)
