"""Answers a camera that wants a name and a password: Basic and Digest, RFC 7616."""

import base64
import hashlib
import re
import secrets
from collections.abc import Sequence

from headstart.errors import SourceError
from headstart.live.sources.address import Address

_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')
_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}


class Login:
    """Makes the ``Authorization`` of each request, once the camera has said how."""

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
