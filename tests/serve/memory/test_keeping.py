"""The table [memory] of a server's settings."""

import pytest

from headstart_server.memory.keeping import MemoryKeeping, MemoryKeepingError
from headstart_server.settings import Settings


def test_without_it_answers_are_forgotten_after_a_week_and_nothing_leaves():
    keeping = Settings.of({}).memory
    assert (keeping.keep_s, keeping.keys, keeping.store) == (7 * 86_400, (), None)


def test_all_of_it(tmp_path):
    file = tmp_path / "memory.key"
    file.write_text("a-new-key-of-32-characters-------\n\nthe-old-key-of-32-characters-----\n")
    table = {"keep_days": 1, "key_file": str(file), "store": str(tmp_path), "save_every_s": 0.5}
    keeping = Settings.of({"memory": table}).memory
    assert keeping.keys[0].startswith(b"a-new")
    assert keeping.keys[1].startswith(b"the-old")
    assert not keeping.is_redis
    assert MemoryKeeping(keys=keeping.keys, store="redis://127.0.0.1:6379/0").is_redis
    assert MemoryKeeping(keys=keeping.keys, store="unix:///run/redis.sock").is_redis


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
    with pytest.raises(MemoryKeepingError, match=why):
        MemoryKeeping.of(table)


@pytest.mark.parametrize("text", ["", "short\n", "long-enough-0123456789\nshort\n"])
def test_a_short_key_is_refused(tmp_path, text):
    file = tmp_path / "memory.key"
    file.write_text(text)
    with pytest.raises(MemoryKeepingError, match="openssl"):
        MemoryKeeping.of({"key_file": str(file)})
