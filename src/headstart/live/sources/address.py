"""The address of a camera on the network, its password apart."""

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from headstart.errors import SourceError

DEFAULT_PORTS = {"http": 80, "https": 443, "rtsp": 554, "rtsps": 322}


@dataclass(frozen=True)
class Address:
    """A parsed address. ``str`` of it holds no password."""

    scheme: str
    host: str
    port: int
    path: str
    """With its query; begins with a slash."""
    user: str | None = None
    password: str = ""

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read an address such as ``rtsp://name:password@camera:554/stream``."""
        try:
            parts: SplitResult = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise SourceError(f"an address that cannot be read ({error}); check it") from error
        if parts.scheme not in DEFAULT_PORTS or not host or any(c.isspace() for c in text):
            raise SourceError(
                "a camera's address is like rtsp://host/path or http://host/path; check yours"
            )
        path = parts.path or "/"
        user = None if parts.username is None else unquote(parts.username)
        password = unquote(parts.password or "")
        # They are sent in a header, which a line's end would end.
        if not f"{user}{password}".isprintable():
            raise SourceError("a name or password that cannot be sent; check the address")
        return cls(
            parts.scheme,
            host,
            port or DEFAULT_PORTS[parts.scheme],
            f"{path}?{parts.query}" if parts.query else path,
            user,
            password,
        )

    @property
    def is_tls(self) -> bool:
        return self.scheme in ("https", "rtsps")

    @property
    def authority(self) -> str:
        """Host and port, the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """The address without what may be a secret: its password, and its query."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"
