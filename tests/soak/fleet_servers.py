"""Several `headstart serve` with one store of memories, behind HAProxy."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any, Literal

import httpx

from rig.servers import MODEL, Server, free_port, serve_command, start, toml
from rig.serving import Workspace

Policy = Literal["stream", "round-robin"]
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
SERVED_BY = "X-Served-By"
"""The header in which the router names the server that answered."""
_BALANCE = {
    "stream": "    balance hdr(X-Session-ID)\n    hash-type consistent",
    "round-robin": "    balance roundrobin",
}
_CONFIG = """
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 300s
    timeout tunnel 1h
frontend cameras
    bind 127.0.0.1:{port}
    http-response set-header {served_by} %s
    default_backend servers
backend servers
{balance}
    option httpchk GET /ready
    option redispatch
    default-server check inter 1s fall 1 rise 1
{servers}
"""


class Fleet:
    """Servers on fixed ports, with one store, behind a router."""

    def __init__(
        self,
        here: Workspace,
        num_servers: int,
        tenants: Sequence[str],
        store: str | None,
        policy: Policy,
    ) -> None:
        """Start the servers. Each tenant's key is its name."""
        self._here, self._tenants, self._store = here, tenants, store
        self._policy = policy
        (here.home / "memory.key").write_text("a key of this program alone")
        self.ports = [free_port() for _ in range(num_servers)]
        self.servers = [self._start(number) for number in range(num_servers)]
        self.router_port = free_port()
        self._router: subprocess.Popen[bytes] | None = None

    def _start(self, number: int) -> Server:
        port, home = self.ports[number], self._here.home / f"server-{number}"
        home.mkdir(exist_ok=True)
        memory: dict[str, Any] = {"key_file": self._here.home / "memory.key", "save_every_s": 5.0}
        if self._store is not None:
            memory["store"] = self._store
        tables = {
            # What a stream knows is then what it has brought along.
            "server": {"target": self._here.target, "port": port, "warm_memory": False},
            "tenants": {name: [name] for name in self._tenants},
            "memory": memory,
            "vllm": {
                "served_model_name": MODEL,
                "enforce_eager": True,
                "block_size": 32,
                "dtype": self._here.dtype,
                "kv_cache_memory_bytes": 1 << 29,
                "enable_prompt_tokens_details": True,
            },
        }
        config = home / "headstart.toml"
        config.write_text(toml(tables))
        return start(serve_command("--config", str(config)), port, home / "server.log")

    def wait_ready(self) -> None:
        """Until every server is, and the router."""
        for server in self.servers:
            server.wait_ready("/ready")
        config = self._here.home / "haproxy.cfg"
        config.write_text(
            _CONFIG.format(
                port=self.router_port,
                served_by=SERVED_BY,
                balance=_BALANCE[self._policy],
                servers="\n".join(f"    server s{p} 127.0.0.1:{p}" for p in self.ports),
            )
        )
        log = self._here.home / "router.log"
        with log.open("wb") as file:
            self._router = subprocess.Popen(
                [str(HAPROXY), "-f", str(config)], stdout=file, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + 60
        with httpx.Client(trust_env=False) as client:
            while time.monotonic() < deadline:
                with contextlib.suppress(httpx.TransportError):
                    if client.get(f"{self.router}/ready").status_code == 200:
                        return
                time.sleep(0.2)
        raise SystemExit(log.read_text()[-2000:])

    @property
    def router(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.router_port}"

    def kill(self, number: int) -> None:
        """Kill a server with all its processes, and start it again."""
        server = self.servers[number]
        for process in [*server.children(), server.process]:
            with contextlib.suppress(Exception):
                process.kill()
        server.process.wait()
        self.servers[number] = self._start(number)

    def drain(self, number: int) -> None:
        """Tell a server to end, which it does when it has answered."""
        self.servers[number].process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End everything."""
        if self._router is not None:
            self._router.terminate()
            self._router.wait()
        for server in self.servers:
            server.stop()
