"""The commands of a document about cameras, run against a real server."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rig.servers import Server
from tests.documents import DOCS, blocks


def run_camera_commands(server: Server, home: Path, addresses: Mapping[str, str]) -> None:
    """Every ``sh`` block of operation.md, with these addresses in place of its own."""
    shell = blocks(DOCS / "operation.md", "sh")
    assert len(shell) >= 4
    for code in shell:
        for address, given in addresses.items():
            code = code.replace(address, given)
        run(server, home, ["bash", "-euc"], code)


def run(server: Server, home: Path, command: list[str], code: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    code = code.replace("http://127.0.0.1:8000", server.url).replace("sk-north", server.key)
    done = subprocess.run(
        [*command, code],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    assert '"error"' not in done.stdout, f"{code}\n{done.stdout}"
    assert done.stdout.strip(), f"{code}\nprinted nothing"
