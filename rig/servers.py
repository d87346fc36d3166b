"""Real servers in processes of their own, asked over real sockets."""

import base64
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from rig import waiting
from rig.forked_command import ForkedCommand

START_TIMEOUT_S = 540.0
TIMEOUT_S = 120.0
MODEL = "target"
"""The last name of the targets' directories, under which `headstart serve` serves them."""
CHAT = "/v1/chat/completions"
UPLOADS = "/v1/headstart/events"
WINDOW = {"start_us": 200_000, "stop_us": 280_000}
"""A part of the clips' events that the drafter can look at."""
MAX_TENANT_REQUESTS = 4
"""Requests at once, of one tenant."""
MAX_TENANT_LIVE = 4
"""Live cameras at once, of one tenant."""
MAX_LIVE_WAITING_BYTES = 150_000
"""Pictures of a live camera that wait: a few windows of the tests' small ones."""
# Small and exact, for every server alike.
ENGINE = {
    "enforce_eager": True,
    "dtype": "float32",
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 28,
}
DRAFTER_ENGINE = {"enforce_eager": True, "dtype": "float32", "kv_cache_memory_bytes": 1 << 28}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A running server. `stop` ends it; its log is kept for when a test fails."""

    process: ForkedCommand
    port: int
    log: Path
    environment: Mapping[str, str]
    """The variables it was started with, besides those of the tests."""
    key: str = ""
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, key: str | None = None) -> httpx.Client:
        key = self.key if key is None else key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        client = httpx.Client(
            base_url=self.url, timeout=TIMEOUT_S, trust_env=False, headers=headers
        )
        self.clients.append(client)
        return client

    def wait_until(self, condition: Any, what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Poll until ``condition()`` is true; the server must not end meanwhile."""
        wait_until(condition, what, timeout_s, self.log)

    def wait_ready(self, path: str) -> None:
        client = self.client("")

        def is_ready() -> bool:
            assert self.process.poll() is None, f"ended while starting:\n{self.tail()}"
            with contextlib.suppress(httpx.TransportError):
                return client.get(path).status_code == 200
            return False

        wait_until(is_ready, f"ready at {path}", START_TIMEOUT_S, self.log)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def engine(self) -> psutil.Process:
        """The process that holds the target."""
        return next(
            child
            for child in self.children()
            if any("EngineCore" in word or "spawn_main" in word for word in child.cmdline())
        )

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> int:
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


def wait_until(condition: Any, what: str, timeout_s: float, log: Path | None = None) -> None:
    """Look ten times a second: each look is a request or more. What failed, its log says."""
    try:
        waiting.wait_until(condition, what, timeout_s, look_s=0.1)
    except AssertionError as error:
        said = log.read_text(errors="replace")[-4000:] if log else ""
        raise AssertionError(f"{error}\n{said}") from error


def start(command: list[str], port: int, log: Path, **environment: str) -> Server:
    """Start it; returns at once."""
    process = ForkedCommand(command, {**os.environ, **environment}, log)
    return Server(process, port, log, environment)


@contextlib.contextmanager
def running(server: Server, path: str = "/ready") -> Iterator[Server]:
    """Until the block is left."""
    try:
        server.wait_ready(path)
        yield server
    finally:
        server.stop()


def serve_command(*words: str) -> list[str]:
    return ["-c", "from headstart.cli import main; main()", "serve", *words]


def toml(tables: dict[str, dict[str, Any]]) -> str:
    """As much of TOML as the tests write."""

    def written(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return f"[{', '.join(map(written, value))}]"
        return repr(value) if isinstance(value, int | float) else f'"{value}"'

    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {written(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


def data_url(path: Path, kind: str = "video/mp4") -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def asking(video: Path | str, question: str, **more: Any) -> dict[str, Any]:
    """The body of a chat request about a video."""
    url = video if isinstance(video, str) else data_url(video)
    content = [
        {"type": "video_url", "video_url": {"url": url}},
        {"type": "text", "text": question},
    ]
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 24,
        "temperature": 0,
        **more,
    }


def with_events(body: dict[str, Any], **event_url: Any) -> dict[str, Any]:
    """The same with a window of events beside the video."""
    message = body["messages"][-1]
    part = {"type": "event_url", "event_url": event_url}
    return {**body, "messages": [{**message, "content": [*message["content"], part]}]}


def ask(client: httpx.Client, body: dict[str, Any], **wishes: Any) -> dict[str, Any]:
    """The answer to a chat request with wishes in its `headstart` field."""
    reply = client.post(CHAT, json={**body, "headstart": wishes})
    assert reply.status_code == 200, reply.text
    return reply.json()


def from_memory(answer: dict[str, Any]) -> tuple[int, int]:
    """Of an answer, how many tokens memory drafted and how many of them the target said."""
    counts = answer["headstart"]["sources"].get("memory", {})
    return counts.get("drafted_tokens", 0), counts.get("accepted_tokens", 0)


def ask_at_once(server: Server, body: dict[str, Any], count: int) -> list[httpx.Response]:
    """The replies to as many requests, each on a connection of its own."""
    with ThreadPoolExecutor(count) as threads:
        asked = [threads.submit(server.client().post, CHAT, json=body) for _ in range(count)]
    return [reply.result() for reply in asked]


def metric(client: httpx.Client, name: str) -> float:
    """The sum of a figure's lines on /metrics; ``name`` may go on to the labels."""
    lines = [li for li in client.get("/metrics").text.splitlines() if li.startswith(name)]
    return sum(float(line.split()[-1]) for line in lines)


def chunks_of(text: str) -> list[dict[str, Any]]:
    """The chunks of a stream; it must have ended properly."""
    import json

    events = [event for event in text.split("\n\n") if event.strip()]
    assert events[-1] == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


def content_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
