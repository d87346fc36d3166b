"""A real MQTT broker on loopback, and a subscriber (`make mqtt` installs the broker)."""

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from rig.waiting import wait_until as until

PATHS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
USER, PASSWORD = "anna", "s3cret/word"
WAIT_S = 60


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=PATHS)


HAS_PAHO = importlib.util.find_spec("paho") is not None
HAS_BROKER = HAS_PAHO and program("mosquitto") is not None


def _found(name: str) -> str:
    found = program(name)
    assert found is not None, name
    return found


def require_broker() -> None:
    """Skip the test that needs it."""
    if not HAS_PAHO:
        pytest.skip("no paho-mqtt: pip install 'headstart[mqtt]'")
    if not HAS_BROKER:
        pytest.skip("no Mosquitto: make mqtt (as root)")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Broker:
    """Mosquitto; the sessions of subscribers outlive it, also when it is killed."""

    _process: "subprocess.Popen[bytes]"

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        has_password: bool = False,
        certificate: Path | None = None,
        access_rules: Path | None = None,
    ) -> None:
        require_broker()
        self.port = port or free_port()
        self._config, self.log = folder / "mosquitto.conf", folder / "mosquitto.log"
        lines = [f"listener {self.port} 127.0.0.1", "user root", f"log_dest file {self.log}"]
        lines += ["persistence true", f"persistence_location {folder}/"]
        lines += ["autosave_interval 1", "autosave_on_changes true"]
        lines += [f"allow_anonymous {'false' if has_password else 'true'}"]
        if has_password:
            passwords = folder / "passwords"
            make = [_found("mosquitto_passwd"), "-b", "-c", str(passwords), USER, PASSWORD]
            subprocess.run(make, check=True)
            lines += [f"password_file {passwords}"]
        if certificate is not None:
            lines += [f"certfile {certificate}", f"keyfile {certificate}"]
        if access_rules is not None:
            lines += [f"acl_file {access_rules}"]
        self._config.write_text("\n".join(lines) + "\n")
        self._saved = folder / "mosquitto.db"

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}/home/cameras"

    def start(self) -> None:
        self._process = subprocess.Popen([_found("mosquitto"), "-c", self._config])
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        # It is only stopped when the system says so.
        until(lambda: Path(f"/proc/{self._process.pid}/stat").read_text().split()[2] == "T")

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def until_saved(self) -> None:
        """Its sessions are on disk."""
        until(self._saved.exists)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()


class Subscriber:
    """Keeps what is published on all topics, in order. Its session outlives its connections."""

    def __init__(self, broker: Broker, *, login: Sequence[str] = ()) -> None:
        from paho.mqtt.client import CallbackAPIVersion, Client

        self.broker = broker
        self.received: list[tuple[str, bytes, bool]] = []
        """Topic, payload and whether it was retained."""
        self._is_subscribed = False
        self._client = Client(
            CallbackAPIVersion.VERSION2, f"subscriber{id(self)}", clean_session=False
        )
        if login:
            self._client.username_pw_set(*login)
        self._client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self._client.on_subscribe = lambda *_: setattr(self, "_is_subscribed", True)
        self._client.on_message = self._keep
        self._client.connect("127.0.0.1", broker.port)

    def _keep(self, _client: Any, _data: Any, message: Any) -> None:
        self.received.append((message.topic, message.payload, message.retain))

    def rows(self, topic: str = "home/cameras/front_door/answer") -> list[dict[str, Any]]:
        return [json.loads(payload) for named, payload, _ in self.received if named == topic]

    @property
    def numbers(self) -> list[int]:
        return [row["number"] for row in self.rows()]

    def statuses(self, topic: str = "home/cameras/status") -> list[str]:
        return [payload.decode() for named, payload, _ in self.received if named == topic]

    def __enter__(self) -> Self:
        self._client.loop_start()
        until(lambda: self._is_subscribed)
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()
