"""A server with tight limits: rates, bodies, uploads, keys, and an engine that hangs."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from rig.servers import (
    CHAT,
    ENGINE,
    MODEL,
    TIMEOUT_S,
    UPLOADS,
    Server,
    chunks_of,
    free_port,
    metric,
    running,
    serve_command,
    start,
    toml,
)

pytestmark = pytest.mark.engine

REQUESTS_PER_MINUTE = 60
TOKENS_PER_MINUTE = 600
"""So few that even a slow machine says more in a minute."""
HEARTBEAT_S = 3.0
LOG = "requests.jsonl"
TENANTS = {name: [f"key-{name}"] for name in ("calm", "hasty", "spender", "sender", "leaver")}


class Shares:
    """A server and the file with its keys."""

    def __init__(self, server: Server, config: Path, tables: dict[str, dict]) -> None:
        self.server = server
        self.config = config
        self.tables = tables

    def client(self, tenant: str) -> httpx.Client:
        return self.server.client(f"key-{tenant}")

    def set_keys(self, **keys: list[str]) -> None:
        """Replace the file by one with other keys."""
        other = self.config.with_suffix(".new")
        other.write_text(toml({**self.tables, "tenants": {**TENANTS, **keys}}))
        other.replace(self.config)


@pytest.fixture(scope="module")
def shares(tmp_path_factory, tiny_target) -> Iterator[Shares]:
    home = tmp_path_factory.mktemp("shares")
    config, port = home / "headstart.toml", free_port()
    tables = {
        "server": {"target": tiny_target, "port": port, "log": home / LOG},
        "tenants": TENANTS,
        "operators": {"watcher": ["key-operator"]},
        "limits": {
            "tenant_requests_per_minute": REQUESTS_PER_MINUTE,
            "tenant_tokens_per_minute": TOKENS_PER_MINUTE,
            "max_uploads": 2,
            "max_all_uploads": 3,
            "max_tenant_bodies_bytes": 1 << 18,
            "heartbeat_s": HEARTBEAT_S,
        },
        "vllm": ENGINE,
    }
    config.write_text(toml(tables))
    server = start(serve_command("--config", str(config)), port, home / "server.log")
    with running(server):
        yield Shares(server, config, tables)


def saying(num_tokens: int, **more) -> dict:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": "What is it?"}],
        "max_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
        **more,
    }


def is_answered(client: httpx.Client) -> bool:
    return client.post(CHAT, json=saying(2)).status_code == 200


def test_requests_per_minute_of_a_tenant_are_limited(shares):
    hasty = shares.client("hasty")
    replies = [
        hasty.post("/tokenize", json={"model": MODEL, "prompt": "x"})
        for _ in range(2 * REQUESTS_PER_MINUTE)
    ]
    in_time = [reply for reply in replies if reply.status_code == 200]
    assert len(in_time) >= REQUESTS_PER_MINUTE
    late = [reply for reply in replies if reply.status_code == 429]
    assert len(in_time) + len(late) == len(replies)
    assert {reply.headers["retry-after"] for reply in late} == {"1"}
    assert is_answered(shares.client("calm"))
    time.sleep(int(late[0].headers["retry-after"]))  # plays: a client that does as it is told
    assert is_answered(hasty)


def test_tokens_per_minute_of_a_tenant_are_limited(shares):
    spender = shares.client("spender")
    asked = 0
    while (reply := spender.post(CHAT, json=saying(400))).status_code == 200:
        asked += 1
        assert asked <= 10, "nothing was charged"
    assert reply.status_code == 429
    assert 0 < int(reply.headers["retry-after"]) <= 60
    used = metric(spender, "headstart_tenant_tokens_total")
    assert used >= TOKENS_PER_MINUTE
    assert used > 400 * asked, "the prompt counts too"
    assert spender.get("/v1/models").status_code == 200
    assert is_answered(shares.client("calm"))


def test_bodies_of_a_tenants_requests_are_bounded_together(shares):
    body = b" " * (1 << 17)
    sender = shares.client("sender")
    ended = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield body
        ended.wait(TIMEOUT_S)
        yield b"{}"

    def send() -> None:
        # A third may come between a head and its body, and take its room. Who is refused in the
        # middle of a body may find the connection closed.
        while not ended.is_set():
            with suppress(httpx.TransportError):
                sender.post("/tokenize", content=slowly())

    threads = [threading.Thread(target=send) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        shares.server.wait_until(
            lambda: sender.get("/ready").json()["in_flight"] == 2, "both in flight"
        )

        def is_refused() -> bool:
            reply = sender.post("/tokenize", content=b" " * 10)
            return reply.status_code == 429 and "too long together" in reply.text

        shares.server.wait_until(is_refused, "a third refused")
        assert is_answered(shares.client("calm"))
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_one_tenants_uploads_leave_anothers_alone(shares):
    recording = b"% evt 3.0\n" + b"x" * 100
    post = lambda tenant: shares.client(tenant).post(  # noqa: E731
        UPLOADS, params={"format": "raw"}, content=recording
    )
    kept = [post("calm").json()["id"] for _ in range(2)]
    assert post("leaver").status_code == 201
    assert post("leaver").status_code == 201  # its own first is gone
    calm = shares.client("calm")
    assert [calm.delete(f"{UPLOADS}/{name}").status_code for name in kept] == [200, 200]


def test_keys_are_revoked_and_added_without_a_restart(shares):
    leaver, late = shares.client("leaver"), shares.client("late")
    assert late.get("/v1/models").status_code == 401
    found: list[str] = []
    body = saying(400, stream=True)
    under_way = threading.Thread(target=lambda: found.append(leaver.post(CHAT, json=body).text))
    under_way.start()
    watching = shares.server.client("key-operator")
    shares.server.wait_until(
        lambda: metric(watching, "headstart_requests_in_flight ") == 1, "it in flight"
    )
    shares.set_keys(leaver=[], late=["key-late"])
    again = shares.client("leaver")
    shares.server.wait_until(lambda: again.get("/v1/models").status_code == 401, "the key revoked")
    assert late.get("/v1/models").status_code == 200
    assert is_answered(late)
    under_way.join()
    assert len(chunks_of(found[0])) > 2, "a request in flight is finished"
    shares.config.write_text("[tenants")
    shares.server.wait_until(
        lambda: (
            late.get("/v1/models").status_code == 200
            and "keys stay as they were" in shares.config.with_name(LOG).read_text()
        ),
        "the file looked at",
    )
    assert late.get("/v1/models").status_code == 200
    assert again.get("/v1/models").status_code == 401
    shares.config.write_text("")
    shares.server.wait_until(lambda: late.get("/v1/models").status_code == 401, "every key refused")
    shares.set_keys()
    shares.server.wait_until(lambda: again.get("/v1/models").status_code == 200, "the keys back")


def test_a_hung_engine_is_not_ready_until_it_answers_again(shares):
    stranger, calm = shares.server.client(""), shares.client("calm")
    shares.server.wait_until(lambda: stranger.get("/ready").json() == {"ready": True}, "ready")
    engine = shares.server.engine()
    engine.suspend()
    try:
        shares.server.wait_until(lambda: stranger.get("/ready").status_code == 503, "not ready")
        assert stranger.get("/ready").json() == {"ready": False}
        assert calm.get("/ready").json()["engine"] == "hung"
        assert stranger.get("/health").status_code == 200, "which is why there is /ready"
    finally:
        engine.resume()
    shares.server.wait_until(lambda: stranger.get("/ready").status_code == 200, "ready again")
    assert is_answered(calm)
