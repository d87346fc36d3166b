"""One connection to an MQTT broker, driven by the thread that uses it.

The only file that knows paho-mqtt. paho's own thread is not used: it waits with `select`, which
fails where a process has more than 1,024 files open, and nothing bounds the time of its end.
"""

import re
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, NoReturn
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
        return f"{self.prefix}/{topic_name(stream)}/answer"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.is_tls else 'mqtt'}://{host}:{self.port}"


def is_broker(url: str) -> bool:
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


CONNECT_S = 5.0
"""How long the broker's machine may take to accept a connection, and then to agree on TLS."""
KEEPALIVE_S = 15
"""After so much silence the broker is asked for a sign of life, and has as long to give one."""
LOOK_S = 1.0
"""How often paho looks at the clock."""
AT_LEAST_ONCE = 1
MAX_PACKET_BYTES = 1 << 10
"""Of what a broker sends; what it may send here has four bytes."""
_CONNACK, _PUBACK, _PINGRESP = 0x20, 0x40, 0xD0
MAX_SPARE = 16
"""So many packets more than were asked for may come, and one a second."""
WRONG_LOGIN = ("Bad user name or password", "Not authorized")


@dataclass(frozen=True)
class MqttMessage:
    topic: str
    payload: bytes
    is_retained: bool = False


class MqttConnection:
    """Publishes one message after another. Every wait ends with an error when its time is over."""

    def __init__(
        self,
        address: MqttAddress,
        client_id: str,
        last_will: MqttMessage,
        *,
        tls: SSLContext | None,
        wake: socket.socket,
        time_left_s: Callable[[], float],
    ) -> None:
        """Bytes that arrive at ``wake`` have a wait look again at what it waits for."""
        mqtt = paho()
        self._address, self._wake, self._time_left_s = address, wake, time_left_s
        self._is_accepted = False
        self._why_lost = ""
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id,
            protocol=mqtt.MQTTv311,  # every broker speaks it
            reconnect_on_failure=False,
        )
        self._num_asked = self._num_received = 0
        self._start_s = time.monotonic()
        # paho has no bound of its own: a broker that announces 256 MB is waited for, and kept.
        self._paho_receives, self._client._sock_recv = self._client._sock_recv, self._receive
        self._paho_handles, self._client._packet_handle = self._client._packet_handle, self._handle
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.will_set(
            last_will.topic, last_will.payload, AT_LEAST_ONCE, last_will.is_retained
        )
        if address.user is not None:
            self._client.username_pw_set(address.user, address.password)
        if tls is not None:
            self._client.tls_set_context(tls)

    def open(self) -> None:
        self._client.connect_timeout = max(0.001, min(CONNECT_S, self._time_left_s()))
        self._client.connect(self._address.host, self._address.port, KEEPALIVE_S)
        self.wait_until(lambda: self._is_accepted)

    def publish(self, message: MqttMessage) -> None:
        """Publish a message, and wait until the broker has acknowledged it."""
        self._num_asked += 1
        sent = self._client.publish(
            message.topic, message.payload, AT_LEAST_ONCE, message.is_retained
        )
        if sent.rc:
            raise ConnectionError(self._why_lost)
        self.wait_until(sent.is_published)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Keep the connection alive until something is true."""
        while not is_true():
            if (time_left_s := self._time_left_s()) == 0:
                raise TimeoutError("the broker has not answered in time")
            self._step(min(LOOK_S, time_left_s))

    def say_goodbye(self) -> None:
        """End the session: the broker does not publish the last will."""
        self._client.disconnect()

    def close(self) -> None:
        """Close the socket. Without a goodbye the broker publishes the last will."""
        if (connected := self._client.socket()) is not None:
            connected.close()

    def _step(self, timeout_s: float) -> None:
        if (connected := self._client.socket()) is None:
            raise ConnectionError(self._why_lost)
        ready = select.poll()
        writable = select.POLLOUT if self._client.want_write() else 0
        ready.register(connected, select.POLLIN | writable)
        ready.register(self._wake, select.POLLIN)
        if (self._wake.fileno(), select.POLLIN) in ready.poll(timeout_s * 1000):
            self._wake.recv(4096)
        self._client.loop_read()  # always: TLS may have read more than it has handed out
        self._client.loop_write()
        self._client.loop_misc()

    def _receive(self, num_bytes: int) -> bytes:
        """In paho's place: a part of a packet, whose length the broker has stated."""
        if num_bytes > MAX_PACKET_BYTES:
            self._refuse("a packet that is too long")
        received: bytes = self._paho_receives(num_bytes)
        return received

    def _handle(self) -> Any:
        """In paho's place: of what was received, only what answers something is looked at."""
        kind = self._client._in_packet["command"] & 0xF0
        if kind not in (_CONNACK, _PUBACK, _PINGRESP):
            self._refuse("what nobody asked for")
        self._num_received += 1
        spare = self._num_received - self._num_asked - MAX_SPARE
        if spare > time.monotonic() - self._start_s:
            self._refuse("more answers than there were questions")
        return self._paho_handles()

    def _refuse(self, what: str) -> NoReturn:
        self._why_lost = f"the broker sends {what}; check whether it is one"
        raise ConnectionError(self._why_lost)

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        self._is_accepted = not reason.is_failure
        if reason.is_failure:
            self._why_lost = f"the broker refuses the connection: {reason}"
            if str(reason) in WRONG_LOGIN:
                self._why_lost += "; check the user and the password in its address"

    def _on_disconnect(
        self, _client: Any, _data: Any, _flags: Any, reason: Any, _more: Any
    ) -> None:
        self._why_lost = self._why_lost or f"the connection is lost: {reason}"


def paho() -> Any:
    """The module of paho-mqtt's client. Raises `LiveError` where it is not installed."""
    try:
        from paho.mqtt import client
    except ImportError as error:
        raise LiveError(
            "MQTT needs paho-mqtt, which is not installed: pip install 'headstart[mqtt]'"
        ) from error
    return client
