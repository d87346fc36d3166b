"""A client of the measurements that abuses a server: it ends when it is told to, wherever it is."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headstart.client.wire import SUBPROTOCOL

STARTED = {"type": "started", "token": "t", "limits": {"resume_s": 30.0}}
END_S = 10.0


@pytest.fixture
def deaf_url() -> Iterator[str]:
    """A server that says that a camera has begun, and reads nothing else."""
    from websockets.sync.server import serve

    over = threading.Event()

    def begin(connection) -> None:
        connection.recv()
        connection.send(json.dumps(STARTED))
        over.wait()

    options = {"subprotocols": [SUBPROTOCOL], "max_queue": 1, "close_timeout": 1}
    with serve(begin, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        over.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("name", "counted"), [("too fast", "frames"), ("rubbish", "messages"), ("killed", "killed")]
)
def test_an_abuser_that_the_server_does_not_read_ends_at_once(deaf_url, tmp_path, name, counted):
    (tmp_path / "0.jpg").write_bytes(bytes(20_000))
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.live_abuser", name, deaf_url, str(tmp_path), "0.8"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        try:
            process.stdin.write("key\n")
            process.stdin.flush()
            assert process.stdout.readline() == "under way\n"
            time.sleep(3)  # the buffers are full, and a child was killed
            family = psutil.Process(process.pid).children()
            process.send_signal(signal.SIGTERM)
            told, _ = process.communicate(timeout=END_S)
        finally:
            process.kill()
    assert json.loads(told)[counted] > 0
    assert psutil.wait_procs(family, timeout=END_S)[1] == []
