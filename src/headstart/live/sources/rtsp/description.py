"""What a camera says it sends: the video track of its session description, RFC 8866."""

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import urljoin

from headstart.errors import SourceError
from headstart.media.annex_b import Codec


@dataclass(frozen=True)
class VideoTrack:
    """The first video of a session that can be read."""

    codec: Codec
    payload_type: int
    clock_hz: int
    url: str
    parameter_sets: tuple[bytes, ...]
    """What the decoder needs before the first picture, where the description states it."""

    @classmethod
    def parse(cls, description: str, base_url: str) -> "VideoTrack":
        """Choose the track; raises `SourceError` where there is none that can be read."""
        session, *media = re.split(r"(?m)^(?=m=)", description.replace("\r\n", "\n"))
        # A control of the whole session may replace the base.
        base_url = _joined(base_url, _attribute(session, "control") or "*")
        offered = []
        for section in media:
            words = section.splitlines()[0].split()
            if words[0] != "m=video":
                continue
            for payload_type, name, clock in re.findall(
                r"(?m)^a=rtpmap:(\d{1,3}) ([\w.-]+)/(\d{1,9})", section
            ):
                offered.append(name)
                if name.upper() not in Codec.__members__ or not int(clock):
                    continue
                return cls(
                    Codec[name.upper()],
                    int(payload_type),
                    int(clock),
                    _joined(base_url, _attribute(section, "control") or "*"),
                    _parameter_sets(section),
                )
        sent = f"sends {', '.join(offered)}" if offered else "describes no video"
        raise SourceError(f"the camera {sent}; set it to H.264 or H.265")


def _attribute(section: str, name: str) -> str | None:
    found = re.search(rf"(?m)^a={name}:(.+)$", section)
    return found.group(1).strip() if found else None


def _joined(base_url: str, control: str) -> str:
    if control == "*":
        return base_url
    if re.match(r"rtsps?://", control, re.IGNORECASE):
        return control
    # As cameras mean it, not as RFC 1808 has it: behind the base, not in place of its last part.
    if control.startswith("/"):
        return re.sub(r"^(\w+://[^/]+).*", rf"\1{control}", base_url)
    return urljoin(base_url if base_url.endswith("/") else base_url + "/", control)


def _parameter_sets(section: str) -> tuple[bytes, ...]:
    stated = re.findall(r"sprop-(?:parameter-sets|vps|sps|pps)=([\w+/=,]+)", section)
    sets = []
    for text in ",".join(stated).split(","):
        try:
            sets.append(base64.b64decode(text, validate=True))
        except binascii.Error:
            continue  # the stream repeats them
    return tuple(each for each in sets if each)
