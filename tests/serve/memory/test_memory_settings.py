"""The table [memory] of a server's settings."""

import pytest

from headstart_server.memory.store import MemorySettings
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError


def test_without_it_answers_are_forgotten_after_a_week_and_nothing_leaves():
    settings = Settings.of({}).memory
    assert (settings.keep_s, settings.keys, settings.store) == (7 * 86_400, (), None)


def test_all_of_it(tmp_path):
    file = tmp_path / "memory.key"
    file.write_text("a-new-key-of-32-characters-------\n\nthe-old-key-of-32-characters-----\n")
    table = {"keep_days": 1, "key_file": str(file), "store": str(tmp_path), "save_every_s": 0.5}
    settings = Settings.of({"memory": table}).memory
    assert settings.keys[0].startswith(b"a-new")
    assert settings.keys[1].startswith(b"the-old")
    assert not settings.is_redis
    assert MemorySettings(keys=settings.keys, store="redis://127.0.0.1:6379/0").is_redis
    assert MemorySettings(keys=settings.keys, store="unix:///run/redis.sock").is_redis


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"keep": 7}, "is not one of"),
        ({"keep_days": "7"}, "wrong type"),
        ({"keep_days": True}, "wrong type"),
        ({"keep_days": 0}, "above 0"),
        ({"save_every_s": float("inf")}, "above 0"),
        ({"key_file": "/nowhere/memory.key"}, "cannot be read"),
        ({"store": "/srv/memory"}, "key_file"),
    ],
)
def test_what_cannot_work_says_what_to_do(table, why):
    with pytest.raises(SettingsError, match=why):
        MemorySettings.of(table)


@pytest.mark.parametrize("text", ["", "short\n", "long-enough-0123456789\nshort\n"])
def test_a_short_key_is_refused(tmp_path, text):
    file = tmp_path / "memory.key"
    file.write_text(text)
    with pytest.raises(SettingsError, match="openssl"):
        MemorySettings.of({"key_file": str(file)})
