"""A server that is restarted finds what it had learnt, in a real Redis."""

import pytest

from rig.redis_server import running_redis
from rig.servers import (
    ENGINE,
    ask,
    asking,
    free_port,
    from_memory,
    running,
    serve_command,
    start,
    toml,
)

pytestmark = pytest.mark.engine


@pytest.fixture
def restarted(tmp_path, tiny_target):
    """Starts a server with a store, as often as it is called."""
    (tmp_path / "memory.key").write_text("0123456789abcdef0123456789abcdef")
    config = tmp_path / "headstart.toml"
    with running_redis() as address:

        def starting(save_every_s):
            port = free_port()
            keeping = {"key_file": tmp_path / "memory.key", "store": address}
            tables = {
                "server": {"target": tiny_target, "port": port},
                "tenants": {"north": ["key-north"], "south": ["key-south"]},
                "memory": {**keeping, "save_every_s": save_every_s},
                "vllm": ENGINE,
            }
            config.write_text(toml(tables))
            server = start(serve_command("--config", str(config)), port, tmp_path / "server.log")
            server.key = "key-north"
            return running(server)

        yield starting


def test_a_restart_keeps_the_head_start(restarted, clips):
    body = asking(clips / "street.mp4", "What is happening?")
    with restarted(save_every_s=3600.0) as server:  # so that only the drain saves
        before = ask(server.client(), body, stream="front")
        assert from_memory(before) == (0, 0)
        assert from_memory(ask(server.client(), body, stream="front"))[1] > 0
    with restarted(save_every_s=3600.0) as server:
        client = server.client()
        (row,) = client.get("/v1/headstart/memory").json()["data"]
        assert (row["stream"], row["answers"]) == ("front", 0)
        assert row["stored_bytes"] > 0
        again = ask(client, body, stream="front")
        assert again["choices"] == before["choices"]
        server.wait_until(
            lambda: client.get("/v1/headstart/memory").json()["data"][0]["answers"] == 3, "loaded"
        )
        assert from_memory(ask(client, body, stream="front"))[1] > 0
        assert from_memory(ask(server.client("key-south"), body, stream="front")) == (0, 0)
