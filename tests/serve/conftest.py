"""Servers that every test of this directory shares, and the clips they are asked about.

`server` is ours with tenants and a drafter, `pair` vLLM's plain server and ours beside it.
"""

import itertools
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from headstart.cli import app
from rig.servers import (
    DRAFTER_ENGINE,
    ENGINE,
    MAX_LIVE_WAITING_BYTES,
    MAX_TENANT_LIVE,
    MAX_TENANT_REQUESTS,
    MODEL,
    Server,
    free_port,
    running,
    serve_command,
    start,
    toml,
)

ODD_KEYS = tuple(f"key-odd-{number}" for number in range(8))
# On CPUs, seeds are open only where prompts are not cut into chunks.
PAIR_ENGINE = {**ENGINE, "enable_chunked_prefill": False}


@pytest.fixture(scope="session")
def clips(tmp_path_factory) -> Path:
    """A directory with street.mp4, street.npz, a darker dusk.mp4 and a large wide.mp4."""
    from headstart.media.events import SensorSize
    from headstart.media.video import Video
    from headstart_events.simulation import simulate
    from headstart_events.writers.writing import write_recording
    from headstart_lab.street import street_video

    directory = tmp_path_factory.mktemp("clips")
    street = street_video(num_frames=16, width=96, height=64)
    street.write(directory / "street.mp4")
    Video(street.frames // 3, street.times_us).write(directory / "dusk.mp4")
    street_video(num_frames=16, width=1280, height=720).write(directory / "wide.mp4")
    seen = zip(street.times_us.tolist(), street.frames, strict=True)
    write_recording(directory / "street.npz", simulate(seen), SensorSize(96, 64))
    return directory


@pytest.fixture(scope="session")
def camera_port() -> int:
    """Where `server` may read a camera."""
    return free_port()


@pytest.fixture(scope="session")
def hook_port() -> int:
    """Where `server` may post answers to."""
    return free_port()


@pytest.fixture(scope="session")
def broker_port() -> int:
    """Where `server` may publish answers to."""
    return free_port()


@pytest.fixture(scope="session")
def answer_log(tmp_path_factory) -> Path:
    """Where `server` keeps the answers of its tenants."""
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="session")
def memory_key() -> bytes:
    """What `server` seals memories with."""
    return b"a key of the tests, longer than short"


@pytest.fixture(scope="session")
def server(
    tmp_path_factory,
    clips,
    tiny_target,
    tiny_drafter,
    camera_port,
    hook_port,
    broker_port,
    answer_log,
    memory_key,
) -> Iterator[Server]:
    """Started by the command that `headstart serve --print-vllm-flags` prints."""
    home = tmp_path_factory.mktemp("server")
    (home / "memory.key").write_bytes(memory_key)
    config, port = home / "headstart.toml", free_port()
    tables = {
        "server": {
            "target": tiny_target,
            "drafter": tiny_drafter,
            "port": port,
            "demo": clips,
            "log": "/dev/full",  # a full disk from the first line on
            "answer_log": answer_log,
            "warm_memory": False,  # what each stream remembers is seen apart from the others
        },
        "tenants": {
            "north": ["key-north", "key-north-2"],
            "south": ["key-south"],
            **{f"odd-{number}": [key] for number, key in enumerate(ODD_KEYS)},
        },
        "operators": {"watcher": ["key-operator"]},
        "limits": {
            "max_tenant_requests": MAX_TENANT_REQUESTS,
            "max_body_bytes": 1 << 20,
            "drain_s": 100.0,
            "max_tenant_live": MAX_TENANT_LIVE,
            # Tests wait for cameras that broke off to be gone, and for an engine to be given up.
            "live_resume_s": 20.0,
            "heartbeat_s": 10.0,
            "max_live_message_bytes": 1 << 20,
            "max_live_waiting_bytes": MAX_LIVE_WAITING_BYTES,
        },
        "media": {"root": clips},
        "memory": {"key_file": home / "memory.key", "store": home / "memories"},
        "cameras": {
            "hosts": [f"127.0.0.1:{camera_port}"],
            "hooks": [f"http://127.0.0.1:{hook_port}", f"mqtt://127.0.0.1:{broker_port}"],
        },
        "vllm": {**ENGINE, "enable_prompt_tokens_details": True},
        "drafter_vllm": DRAFTER_ENGINE,
    }
    config.write_text(toml(tables))
    told = CliRunner().invoke(app, ["serve", f"--config={config}", "--print-vllm-flags"])
    assert told.exit_code == 0, told.output
    words = shlex.split(told.stdout)  # it runs as it is
    variables = dict(word.split("=", 1) for word in words[: words.index("python")])
    command = words[words.index("python") + 1 :]
    server = start(command, port, home / "server.log", **variables)
    server.key = "key-north"
    with running(server):
        yield server


@pytest.fixture(scope="session")
def north(server) -> httpx.Client:
    return server.client("key-north")


@pytest.fixture(scope="session")
def south(server) -> httpx.Client:
    return server.client("key-south")


@pytest.fixture(scope="session")
def odd_keys() -> Iterator[str]:
    return itertools.cycle(ODD_KEYS)


@pytest.fixture
def odd_key(odd_keys) -> str:
    """Of a tenant whose sockets are refused: after ten, the next ones wait for seconds each."""
    return next(odd_keys)


@pytest.fixture(scope="session")
def operator(server) -> httpx.Client:
    """Sees every figure, and may ask nothing."""
    return server.client("key-operator")


@pytest.fixture
def drafter_up(server, north) -> None:
    server.wait_until(lambda: north.get("/ready").json()["drafter"] == "up", "the drafter up", 300)


@pytest.fixture(scope="session")
def pair_home(tmp_path_factory) -> Path:
    """Where the servers of `pair` keep their logs; ours notes its requests in requests.jsonl."""
    return tmp_path_factory.mktemp("pair")


@pytest.fixture(scope="session")
def ours_command(pair_home, tiny_target) -> Callable[[int], list[str]]:
    """The command that starts `pair`'s server of ours on a port."""

    def command(port: int) -> list[str]:
        config = pair_home / "headstart.toml"
        told = {"target": tiny_target, "port": port, "open": True}
        config.write_text(toml({"server": told, "vllm": PAIR_ENGINE}))
        return serve_command("--config", str(config), f"--set=log={pair_home / 'requests.jsonl'}")

    return command


@pytest.fixture(scope="session")
def pair(pair_home, tiny_target, ours_command) -> Iterator[tuple[Server, Server]]:
    """vLLM's plain server and ours, started at once."""
    from headstart.models.video_llava.view import CHAT_TEMPLATE
    from headstart_server.server import flags

    arguments = {
        "model": str(tiny_target),
        "served_model_name": MODEL,
        "host": "127.0.0.1",
        "port": free_port(),
        "chat_template": CHAT_TEMPLATE,
        "media_io_kwargs": {"video": {"num_frames": 8}},
        **PAIR_ENGINE,
    }
    program = ["-m", "vllm.entrypoints.openai.api_server"]
    plain = start([*program, *flags(arguments)], arguments["port"], pair_home / "plain.log")
    port = free_port()
    ours = start(ours_command(port), port, pair_home / "ours.log")
    with running(plain, "/health"), running(ours):
        yield plain, ours
