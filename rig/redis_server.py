"""A Redis or Valkey of one's own, on a socket in a directory."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.waiting import wait_until

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


@contextlib.contextmanager
def running_redis() -> Iterator[str]:
    """Its address, until the block is left; skips the test where there is none."""
    if PROGRAM is None:
        pytest.skip("no Redis is installed: make redis")
    redis = pytest.importorskip("redis", reason="pip install 'headstart[redis]'")
    with tempfile.TemporaryDirectory() as home:  # a socket's path must be short
        socket = Path(home) / "redis.sock"
        options = {"port": "0", "unixsocket": str(socket), "save": "", "dir": home}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(unix_socket_path=str(socket))

            def is_up() -> bool:
                assert process.poll() is None
                with contextlib.suppress(redis.ConnectionError):
                    return bool(client.ping())
                return False

            wait_until(is_up, "Redis")
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait(30)
