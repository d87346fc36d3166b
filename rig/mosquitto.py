"""A real MQTT broker on loopback, and a subscriber (`make mqtt` installs the broker)."""

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from rig.waiting import wait_until as until

PATHS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
USER, PASSWORD = "anna", "s3cret/word"
WAIT_S = 60


def program(name):
    return shutil.which(name) or shutil.which(name, path=PATHS)


HAS_PAHO = importlib.util.find_spec("paho") is not None
HAS_BROKER = HAS_PAHO and program("mosquitto") is not None


def require_broker():
    """Skip the test that needs it."""
    if not HAS_PAHO:
        pytest.skip("no paho-mqtt: pip install 'headstart[mqtt]'")
    if not HAS_BROKER:
        pytest.skip("no Mosquitto: make mqtt (as root)")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Broker:
    """Mosquitto; the sessions of subscribers outlive it, also when it is killed."""

    def __init__(
        self, folder, *, port=None, has_password=False, certificate=None, access_rules=None
    ):
        require_broker()
        self.port, self._process = port or free_port(), None
        self._config, self.log = folder / "mosquitto.conf", folder / "mosquitto.log"
        lines = [f"listener {self.port} 127.0.0.1", "user root", f"log_dest file {self.log}"]
        lines += ["persistence true", f"persistence_location {folder}/"]
        lines += ["autosave_interval 1", "autosave_on_changes true"]
        lines += [f"allow_anonymous {'false' if has_password else 'true'}"]
        if has_password:
            passwords = folder / "passwords"
            make = [program("mosquitto_passwd"), "-b", "-c", passwords, USER, PASSWORD]
            subprocess.run(make, check=True)
            lines += [f"password_file {passwords}"]
        if certificate is not None:
            lines += [f"certfile {certificate}", f"keyfile {certificate}"]
        if access_rules is not None:
            lines += [f"acl_file {access_rules}"]
        self._config.write_text("\n".join(lines) + "\n")
        self._saved = folder / "mosquitto.db"

    @property
    def url(self):
        return f"mqtt://127.0.0.1:{self.port}/home/cameras"

    def start(self):
        self._process = subprocess.Popen([program("mosquitto"), "-c", self._config])
        until(self._answers)

    def _answers(self):
        assert self._process.poll() is None, self.log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)
        # It is only stopped when the system says so.
        until(lambda: Path(f"/proc/{self._process.pid}/stat").read_text().split()[2] == "T")

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def until_saved(self):
        """Its sessions are on disk."""
        until(self._saved.exists)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.kill()


class Subscriber:
    """Keeps what is published on all topics, in order. Its session outlives its connections."""

    def __init__(self, broker, *, login=()):
        from paho.mqtt.client import CallbackAPIVersion, Client

        self.broker = broker
        self.received = []
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

    def _keep(self, _client, _data, message):
        self.received.append((message.topic, message.payload, message.retain))

    def rows(self, topic="home/cameras/front_door/answer"):
        return [json.loads(payload) for named, payload, _ in self.received if named == topic]

    @property
    def numbers(self):
        return [row["number"] for row in self.rows()]

    def statuses(self, topic="home/cameras/status"):
        return [payload.decode() for named, payload, _ in self.received if named == topic]

    def __enter__(self):
        self._client.loop_start()
        until(lambda: self._is_subscribed)
        return self

    def __exit__(self, *exc):
        self._client.disconnect()
        self._client.loop_stop()
