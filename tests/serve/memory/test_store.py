"""Stores of sealed memories: a directory, and a real Redis."""

import os
import stat

import pytest

from headstart.speculation.drafter import StreamKey
from headstart_server.memory.store import (
    FileStore,
    MemorySettings,
    RedisStore,
    open_store,
)
from headstart_server.settings_table import SettingsError
from rig.redis_server import running_redis
from rig.waiting import wait_until
from tests.serve.memory.memories import FRONT, KEY

HOSTILE = ("../../etc/passwd", "a/b", "..", "-rf", "x" * 128, "ü\n車", "*", "\ud800")


@pytest.fixture(scope="module")
def redis_address():
    with running_redis() as address:
        yield address


@pytest.fixture(params=["files", "redis"])
def make_store(request, tmp_path):
    """Makes stores of one place; nothing is in it."""
    if request.param == "files":
        yield lambda keep_s: FileStore(tmp_path / "memories", keep_s)
    else:
        address = request.getfixturevalue("redis_address")
        yield lambda keep_s: RedisStore(address, keep_s)
        import redis

        redis.Redis.from_url(address).flushall()


@pytest.fixture
def store(make_store):
    return make_store(3600.0)


def test_what_was_put_is_there_for_another_server(make_store):
    make_store(3600.0).put(FRONT, b"first\nmemory")
    make_store(3600.0).put(FRONT, b"second\nmemory")
    assert make_store(3600.0).get(FRONT) == b"second\nmemory"


def test_nothing_is_there_of_others(store):
    store.put(FRONT, b"memory")
    assert store.get(StreamKey("south", FRONT.stream)) is None
    assert store.get(StreamKey("north", "back")) is None
    assert store.streams("south") == []


def put_later(store, name):
    """Put it until its time is after all others', however coarse the store's clock is."""
    others_s = [each.saved_at_s for each in store.streams("north") if each.name != name]

    def is_newest():
        store.put(StreamKey("north", name), b"12345")
        (saved_s,) = [each.saved_at_s for each in store.streams("north") if each.name == name]
        return all(saved_s > other_s for other_s in others_s)

    wait_until(is_newest, "a later time")


def test_streams_are_listed_in_the_order_they_were_saved(store):
    for name in ("b", "a", "c", "b"):
        put_later(store, name)
    listed = store.streams("north")
    assert [each.name for each in listed] == ["a", "c", "b"]
    assert all(each.num_bytes >= 5 and each.saved_at_s > 1e9 for each in listed)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_a_name(store, name):
    store.put(StreamKey(name, name), b"memory")
    assert store.get(StreamKey(name, name)) == b"memory"
    assert [each.name for each in store.streams(name)] == [name]
    store.forget(StreamKey(name, name))
    assert store.get(StreamKey(name, name)) is None


def test_what_is_forgotten_is_gone(store):
    store.put(FRONT, b"memory")
    store.forget(FRONT)
    store.forget(FRONT)
    assert store.get(FRONT) is None
    assert store.streams("north") == []


def test_what_nobody_saved_again_is_forgotten_in_time(make_store):
    make_store(3600.0).put(FRONT, b"memory")
    assert make_store(3600.0).get(FRONT) == b"memory"
    store = make_store(0.05)
    store.put(FRONT, b"memory")
    wait_until(lambda: store.get(FRONT) is None, "its end")
    wait_until(lambda: store.streams("north") == [], "the end of its row")


def test_files_are_for_their_owner_only_and_old_ones_are_deleted(tmp_path):
    store = FileStore(tmp_path / "memories", 60.0)
    store.put(FRONT, b"memory")
    (file,) = (tmp_path / "memories").rglob("*.memory")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    os.utime(file, (0, file.stat().st_mtime - 120))
    assert store.streams("north") == []
    assert not file.exists()


def test_a_directory_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="store under"):
        open_store(MemorySettings(keys=(KEY,), store=str(tmp_path / "file" / "memories")))


def test_a_redis_that_is_away_is_no_reason_not_to_start(tmp_path):
    redis = pytest.importorskip("redis")
    store = open_store(MemorySettings(keys=(KEY,), store=f"unix://{tmp_path}/none.sock"))
    with pytest.raises(redis.ConnectionError):
        store.get(FRONT)
