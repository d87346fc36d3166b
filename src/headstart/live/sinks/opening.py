"""Opens a sink by its address."""

from headstart.live.sinks.answer_sink import AnswerSink
from headstart.live.sinks.hook import Hook
from headstart.live.sinks.mqtt import MqttPublisher
from headstart.live.sinks.mqtt_connection import is_broker


def open_sink(url: str) -> AnswerSink:
    """A broker for ``mqtt://`` and ``mqtts://``; anything else is posted to over HTTP."""
    return MqttPublisher(url) if is_broker(url) else Hook(url)
