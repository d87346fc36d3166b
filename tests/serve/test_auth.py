"""Keys: their owners, their expiry, and what happens when their file changes."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from headstart_server import auth as auth_module
from headstart_server.auth import Caller, KeyFile, Keys
from headstart_server.settings_table import SettingsError

NORTH = Caller("north")
OPERATOR = Caller("watcher", may_ask=False, sees_all=True)


def hashed(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def test_a_key_identifies_its_owner():
    keys = Keys.of({"tenants": {"north": ["one", "two"]}, "operators": {"watcher": "three"}})
    assert keys.caller("Bearer one") == keys.caller("bearer two") == NORTH
    assert keys.caller("Bearer three") == OPERATOR
    for wrong in ("", "Bearer", "Bearer ", "Basic one", "one", "Bearer on", "Bearer ONE"):
        assert keys.caller(wrong) is None, wrong


def test_keys_are_kept_as_digests():
    keys = Keys.of({"tenants": {"north": ["secret", hashed("hidden")]}})
    assert "secret" not in repr(keys)
    assert keys.caller("Bearer hidden") == NORTH
    assert keys.caller(f"Bearer {hashed('hidden')}") is None


def test_an_expired_key_is_refused():
    now = datetime.now(UTC)
    for hours, caller in ((1, NORTH), (-1, None)):
        entry = {"key": "one", "expires": now + timedelta(hours=hours)}
        assert Keys.of({"tenants": {"north": [entry]}}).caller("Bearer one") == caller


@pytest.mark.parametrize(
    "entry",
    [
        1,
        "",
        "with space",
        "schlüssel",
        "line\nbreak",
        "sha256:1234",
        "sha256:" + "x" * 64,
        {"key": "one"},
        {"key": "one", "expires": "tomorrow"},
        {"key": "one", "expires": datetime(2027, 1, 1)},
        {"key": "one", "until": datetime(2027, 1, 1, tzinfo=UTC)},
        {"key": 1, "expires": datetime(2027, 1, 1, tzinfo=UTC)},
    ],
    ids=str,
)
def test_a_key_that_no_header_can_carry_is_an_error_that_names_its_owner(entry):
    with pytest.raises(SettingsError, match=r"\[tenants\] north"):
        Keys.of({"tenants": {"north": [entry]}})


def test_a_key_has_one_owner():
    for tables in (
        {"tenants": {"north": ["k"], "south": ["k"]}},
        {"tenants": {"north": ["k"], "south": [hashed("k")]}},
        {"tenants": {"same": ["k"]}, "operators": {"same": ["k"]}},
    ):
        with pytest.raises(SettingsError, match="shares a key"):
            Keys.of(tables)


def test_without_a_tenants_key_no_request_can_be_admitted():
    for tables in ({}, {"tenants": {}}, {"tenants": {"north": []}}, {"operators": {"w": ["k"]}}):
        assert not Keys.of(tables).has_tenant_key
    keys = Keys.of({"tenants": {"north": [], "south": ["k"]}})
    assert keys.tenants == {"north", "south"}
    assert keys.caller("Bearer k") == Caller("south")


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A file of keys that is checked at every request, and the messages about it."""
    monkeypatch.setattr(auth_module, "CHECK_EVERY_S", 0.0)
    path = tmp_path / "headstart.toml"
    path.write_text('[tenants]\nnorth = ["one"]')
    messages: list[str] = []
    return KeyFile(Keys.of({"tenants": {"north": ["one"]}}), path, messages.append), path, messages


def put(path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


def test_keys_are_added_and_revoked_with_their_file(watched):
    file, path, messages = watched
    assert file.keys.caller("Bearer one") == NORTH
    assert messages == []
    put(path, '[tenants]\nnorth = ["two"]\n[operators]\nwatcher = ["three"]\n[limits]\nodd = 1')
    assert file.keys.caller("Bearer one") is None
    assert file.keys.caller("Bearer two") == NORTH
    assert file.keys.caller("Bearer three") == OPERATOR
    assert len(messages) == 1


@pytest.mark.parametrize("text", ["", "[tenants]\nnorth = []", "[limits]"])
def test_a_file_without_keys_refuses_every_request(watched, text):
    file, path, _ = watched
    put(path, text)
    assert file.keys.caller("Bearer one") is None
    assert not file.keys.keys


@pytest.mark.parametrize("text", ["[tenants", "[tenants]\nnorth = [1]", "tenants = 3", None])
def test_a_file_that_cannot_be_read_changes_no_key_and_is_reported(watched, text):
    file, path, messages = watched
    assert file.keys.caller("Bearer one") == NORTH
    if text is None:
        path.unlink()
    else:
        put(path, text)
    assert file.keys.caller("Bearer one") == NORTH
    assert "stay as they were" in messages[0]
    put(path, '[tenants]\nsouth = ["two"]')
    assert file.keys.caller("Bearer one") is None


def test_a_change_during_start_up_counts(tmp_path):
    path = tmp_path / "headstart.toml"
    path.write_text('[tenants]\nnorth = ["two"]')
    file = KeyFile(Keys.of({"tenants": {"north": ["one"]}}), path, lambda _: None)
    assert file.keys.caller("Bearer one") is None


def test_the_file_is_checked_once_a_second(tmp_path, monkeypatch):
    path = tmp_path / "headstart.toml"
    path.write_text('[tenants]\nnorth = ["one"]')
    file = KeyFile(Keys(), path, lambda _: None)
    assert file.keys.caller("Bearer one") == NORTH
    put(path, '[tenants]\nnorth = ["two"]')
    assert file.keys.caller("Bearer one") == NORTH
    monkeypatch.setattr(auth_module, "CHECK_EVERY_S", 0.0)
    assert file.keys.caller("Bearer one") is None


def test_a_tenant_is_known_while_one_of_its_keys_is_valid():
    past, future = datetime(2001, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
    tenants = {
        "north": ["a", {"key": "b", "expires": past}],
        "south": [{"key": "c", "expires": past}],
        "east": [{"key": "d", "expires": future}],
        "west": [],
    }
    keys = Keys.of({"tenants": tenants, "operators": {"watcher": ["e"]}})
    known = [name for name in (*tenants, "watcher", "nobody") if keys.has_tenant(name)]
    assert known == ["north", "east"]
