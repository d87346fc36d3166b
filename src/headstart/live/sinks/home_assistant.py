"""Home Assistant's MQTT discovery: a message that has it make a sensor for a camera."""

import hashlib
import json

from headstart.live.sinks.mqtt_address import MqttAddress
from headstart.live.sinks.mqtt_connection import MqttMessage

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
