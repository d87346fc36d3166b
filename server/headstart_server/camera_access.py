"""Where the server itself may connect to for cameras: their hosts, and the receivers of hooks.

[cameras]                                     # nowhere, unless named here
hosts = ["192.168.1.20", "nvr.example.org:8554"]
hooks = ["https://home.example.org", "mqtt://broker.example.org"]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlsplit

from headstart.errors import LiveError, SourceError
from headstart.live.sinks.mqtt_connection import MqttAddress, is_broker, paho
from headstart.live.sources.address import DEFAULT_PORTS, Address
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.settings_table import SettingsError, checked

ENTRIES = {"hosts": list, "hooks": list}
"""The entries of [cameras] and the type of each."""


@dataclass(frozen=True)
class CameraAccess:
    """What tenants may name. Nothing unless an operator has."""

    hosts: frozenset[str] = frozenset()
    """Where cameras may be: names or addresses, with a port where it is not the usual one of the
    address's scheme."""
    hooks: tuple[str, ...] = ()
    """Where answers may be sent to: schemes with hosts, and ports where they have some."""
    brokers: frozenset[str] = frozenset()
    """The same of MQTT brokers, always with a port."""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        given = checked("cameras", table, ENTRIES)
        hosts = [_host(each) for each in given.get("hosts", ())]
        hooks = [_origin(each) for each in given.get("hooks", ())]
        brokers = [str(MqttAddress.parse(each)) for each in hooks if is_broker(each)]
        receivers = [each for each in hooks if not is_broker(each)]
        return cls(frozenset(hosts), tuple(receivers), frozenset(brokers))

    def check_source(self, text: str) -> Address:
        """The address of a camera that may be read; raises a refusal for any other."""
        try:
            address = Address.parse(text)
        except SourceError as error:
            raise bad_request(f"source is {error}") from error
        host = f"[{address.host}]" if ":" in address.host else address.host
        is_usual = address.port == DEFAULT_PORTS[address.scheme]
        if f"{host}:{address.port}" in self.hosts or (is_usual and host in self.hosts):
            return address
        named = host if is_usual else f"{host}:{address.port}"
        raise _closed(f"{named} is not open to cameras", f'hosts = ["{named}"]')

    def check_hook(self, url: str) -> str:
        """An address that answers may be posted to; raises a refusal for any other."""
        if is_broker(url):
            return self._check_broker(url)
        # Compared as a text up to the slash, so that no reading of the address leads elsewhere.
        if any(url.lower().startswith(f"{origin}/") for origin in self.hooks):
            return url
        raise _closed(
            "answers may not be posted there", 'hooks = ["https://HOST"], with a path in yours'
        )

    def _check_broker(self, url: str) -> str:
        try:
            broker = str(MqttAddress.parse(url))  # as it is connected to, without the password
            paho()
        except LiveError as error:
            raise bad_request(f"hook: {error}") from error
        if broker in self.brokers:
            return url
        raise _closed("answers may not be published there", f'hooks = ["{broker}"]')


def _closed(what: str, setting: str) -> RefusedError:
    return RefusedError(
        HTTPStatus.FORBIDDEN,
        f"{what}; its operator can open it, under [cameras] of the server's settings: {setting}",
    )


def _host(given: object) -> str:
    text = given.lower() if isinstance(given, str) else ""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    plain = f"[{host}]" if ":" in host else host
    if not host or text not in (plain, f"{plain}:{port}") or not text.isprintable() or " " in text:
        raise SettingsError(
            f"[cameras] hosts holds {given!r}; give a host, with its port where it is not the usual"
            ' one, such as "192.168.1.20" or "nvr.example.org:8554"'
        )
    return text


def _origin(given: object) -> str:
    text = given.lower() if isinstance(given, str) else ""
    parts = urlsplit(text)
    is_known = parts.scheme in ("http", "https") or (is_broker(text) and "@" not in text)
    if not is_known or not parts.hostname or text != f"{parts.scheme}://{parts.netloc}":
        raise SettingsError(
            f"[cameras] hooks holds {given!r}; give the scheme, host and port of a receiver, such"
            ' as "https://home.example.org" or "mqtt://broker.example.org"'
        )
    return text
