"""The address of an MQTT broker, and the topics below it."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from headstart.errors import LiveError

DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
DEFAULT_PREFIX = "headstart"
MAX_PREFIX_CHARS = 256
MAX_NAME_CHARS = 128


@dataclass(frozen=True)
class MqttAddress:
    """A broker and the prefix of our topics there. ``str`` of it holds no user and no password."""

    host: str
    port: int
    is_tls: bool
    prefix: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> "MqttAddress":
        """Read an address such as ``mqtt://user:password@broker:1883/headstart``.

        No error repeats a part of it: where it is miswritten, any part may be the password.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise _unreadable() from None
        is_whole = not (parts.query or parts.fragment or any(c.isspace() for c in text))
        if parts.scheme not in DEFAULT_PORTS or not host or not is_whole:
            raise _unreadable()
        return cls(
            host,
            port or DEFAULT_PORTS[parts.scheme],
            parts.scheme == "mqtts",
            _prefix(unquote(parts.path).strip("/") or DEFAULT_PREFIX),
            None if parts.username is None else unquote(parts.username),
            None if parts.password is None else unquote(parts.password),
        )

    @property
    def status_topic(self) -> str:
        """Says whether the publisher is there: online or offline, retained."""
        return f"{self.prefix}/status"

    def answer_topic(self, stream: str) -> str:
        """Where a camera's answers are published."""
        return f"{self.prefix}/{topic_name(stream)}/answer"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.is_tls else 'mqtt'}://{host}:{self.port}"


def is_broker(url: str) -> bool:
    """Whether an address is one of MQTT."""
    return url.lower().startswith(tuple(f"{scheme}://" for scheme in DEFAULT_PORTS))


def topic_name(stream: str) -> str:
    """A camera's name as one level of a topic.

    What is neither a letter nor a digit nor one of ``_-.`` becomes an underscore, a run of it one;
    none stand at the ends.
    """
    name = re.sub(r"[^\w.-]+", "_", stream)[:MAX_NAME_CHARS].strip("_")
    return name or "camera"


def _prefix(text: str) -> str:
    # An @ there is most often the end of a password that holds a slash.
    if len(text) > MAX_PREFIX_CHARS or not text.isprintable() or set(text) & set("+#$@"):
        raise LiveError(
            "the path of an MQTT address is the beginning of topics, as in mqtt://HOST/home/cameras:"
            f" give at most {MAX_PREFIX_CHARS} characters without + # $ @, and write / ? # @ of a"
            " password as %2F %3F %23 %40"
        )
    return text


def _unreadable() -> LiveError:
    return LiveError(
        "a broker's address is like mqtt://HOST:1883/headstart, mqtts:// with TLS, or"
        " mqtt://USER:PASSWORD@HOST/headstart, where / ? # @ of a password are written as"
        " %2F %3F %23 %40; check yours"
    )
