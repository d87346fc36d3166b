"""A client of the measurements that abuses a server: it ends when it is told to, wherever it is."""

import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from headstart_client.wire import SUBPROTOCOL
from rig.waiting import wait_until

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


def unheard_bytes(port: int) -> int:
    """What clients have sent to a server that it has not read."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    queues = [q for _, local, _, _, q, *_ in lines if int(local.rpartition(":")[2], 16) == port]
    return max((int(queue.partition(":")[2], 16) for queue in queues), default=0)


def is_full(looks: deque[int]) -> bool:
    """Whether nothing more went in, look after look."""
    return len(looks) == looks.maxlen and looks[0] > 0 and len(set(looks)) == 1


@pytest.mark.parametrize(
    ("name", "counted"), [("too fast", "frames"), ("rubbish", "messages"), ("killed", "killed")]
)
def test_an_abuser_that_the_server_does_not_read_ends_at_once(deaf_url, tmp_path, name, counted):
    (tmp_path / "0.jpg").write_bytes(bytes(20_000))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.live_abuser", name, deaf_url, str(tmp_path), "0.8"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        try:
            process.stdin.write("key\n")
            process.stdin.flush()
            assert process.stdout.readline() == "under way\n"
            if name == "killed":
                children, pids = psutil.Process(process.pid).children, set[int]()
                wait_until(lambda: pids.update(c.pid for c in children()) or len(pids) > 1)
            else:
                port = urlsplit(deaf_url).port
                looks = deque[int](maxlen=20)
                wait_until(lambda: looks.append(unheard_bytes(port)) or is_full(looks))
            family = psutil.Process(process.pid).children()
            process.send_signal(signal.SIGTERM)
            told, _ = process.communicate(timeout=END_S)
        finally:
            process.kill()
    assert json.loads(told)[counted] > 0
    assert psutil.wait_procs(family, timeout=END_S)[1] == []
