"""The server says what it said in the recorded live session, field by field."""

import json

import pytest

from tests.golden.live_session import read, record, texts_in

pytestmark = pytest.mark.engine


def shapes(lines) -> dict[str, set[str]]:
    """Of each type of message, its fields in their order, and what kind of value each holds."""
    found: dict[str, set[str]] = {}
    for text in texts_in(lines, "server"):
        message = json.loads(text)
        found.setdefault(message["type"], set()).add(shape(message))
    return found


def shape(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shape(one)}" for name, one in value.items()) + "}"
    return type(value).__name__


def test_a_server_says_the_same_kinds_of_messages(server):
    kept, made = shapes(read()), shapes(record(server.url, server.key))
    # Which words are shown before they are certain is a matter of time, and so are counts.
    timely = {"preview", "retracted", "counts"}
    assert made.keys() | timely == kept.keys()
    for kind in made.keys() - timely:
        assert made[kind] == kept[kind]
    for kind in made.keys() & timely:
        assert made[kind] & kept[kind], kind
