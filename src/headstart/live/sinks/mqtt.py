"""Publishes rows of JSON to an MQTT broker, from a thread of its own, for home automation.

The caller never waits. A row is published again until the broker acknowledges it; rows that come
meanwhile wait in a bounded queue, and the oldest of them are dropped and counted.
"""

import hashlib
import json
import socket
import ssl
import threading
import uuid
from collections.abc import Mapping
from contextlib import closing, suppress

from headstart.live.sinks.mqtt_connection import MqttAddress, MqttConnection, MqttMessage, paho
from headstart.live.sinks.outbox import FIRST_PAUSE_S, GRACE_S, MAX_WAITING, AnswerSink, Outbox

STOP_S = 1.0
"""How long `close` waits for the thread once its time is over."""


class MqttPublisher(AnswerSink):
    """A receiver that is an MQTT broker."""

    def __init__(
        self,
        url: str,
        *,
        has_discovery: bool = False,
        max_waiting: int = MAX_WAITING,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        """``has_discovery``: have Home Assistant make a sensor for each camera."""
        self._address = MqttAddress.parse(url)
        paho()  # its absence is told now
        self._has_discovery = has_discovery
        # One name for all connections: a broker that still holds the last one then ends it, and
        # publishes its will, before it takes the next. 23 characters are what every broker takes.
        self._client_id = f"headstart{uuid.uuid4().hex[:14]}"
        self._tls = ssl.create_default_context() if self._address.is_tls else None
        self._outbox: Outbox[tuple[str, bytes]] = Outbox(
            str(self._address), max_waiting, first_pause_s
        )
        """A camera's name, and its answer as JSON."""
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)
        self._thread.start()

    def post(self, row: Mapping[str, object]) -> None:
        """Have a row published to the topic of its ``stream``. Returns at once."""
        self._outbox.put((str(row["stream"]), json.dumps(dict(row)).encode()))
        self._look()

    def close(self, grace_s: float = GRACE_S) -> None:
        """Publish what waits, for at most ``grace_s``, and drop the rest.

        The thread ends then too, unless it is connecting: that takes a few seconds at most.
        """
        self._outbox.close(grace_s)
        self._look()
        self._thread.join(grace_s + STOP_S)
        self._outbox.abandon()

    def _look(self) -> None:
        with suppress(OSError):  # as many bytes wait as fit, or the thread has ended
            self._waker.send(b"!")

    def _run(self) -> None:
        with self._wake, self._waker:
            while not self._outbox.is_over:
                try:
                    with closing(self._connection()) as connection:
                        connection.open()
                        self._publish_all(connection)
                except Exception as error:  # paho raises whatever a broken packet leads it to
                    self._outbox.note_failure(str(error) or type(error).__name__)
                    self._outbox.pause()

    def _connection(self) -> MqttConnection:
        return MqttConnection(
            self._address,
            self._client_id,
            self._status("offline"),
            tls=self._tls,
            wake=self._wake,
            time_left_s=self._outbox.time_left_s,
        )

    def _publish_all(self, connection: MqttConnection) -> None:
        connection.publish(self._status("online"))
        announced = set()
        while not self._outbox.is_over:
            connection.wait_until(lambda: self._outbox.is_due)
            if (answer := self._outbox.take()) is None:
                continue
            stream, body = answer
            if self._has_discovery and stream not in announced:
                connection.publish(sensor_config(self._address, stream))
                announced.add(stream)
            connection.publish(MqttMessage(self._address.answer_topic(stream), body))
            self._outbox.settle(is_delivered=True)
        connection.publish(self._status("offline"))
        connection.say_goodbye()

    def _status(self, word: str) -> MqttMessage:
        return MqttMessage(self._address.status_topic, word.encode(), is_retained=True)


DISCOVERY_PREFIX = "homeassistant"
"""Where Home Assistant listens unless it is set up otherwise."""
MAX_STATE_CHARS = 255
"""Home Assistant takes no longer state."""


def sensor_config(address: MqttAddress, stream: str) -> MqttMessage:
    """A sensor whose state is the camera's newest answer, and whose attributes are its row."""
    topic = address.answer_topic(stream)
    name = _identifier(topic)
    config = {
        "name": stream,
        "unique_id": name,
        "icon": "mdi:cctv",
        "state_topic": topic,
        "value_template": f"{{{{ (value_json.target_text | trim)[:{MAX_STATE_CHARS}] }}}}",
        "json_attributes_topic": topic,
        "availability_topic": address.status_topic,
        "device": {"identifiers": [_identifier(address.prefix)], "name": address.prefix},
        "origin": {"name": "headstart"},
    }
    return MqttMessage(
        f"{DISCOVERY_PREFIX}/sensor/{name}/config", json.dumps(config).encode(), is_retained=True
    )


def _identifier(text: str) -> str:
    """Always the same for a text, of the characters that Home Assistant takes."""
    return f"headstart_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
