"""The examples of documents, run against a real server."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from headstart_lab.answering import held_out_drive
from headstart_lab.seconds import write_second

from tests.documents import ASKING_A_SERVER, DOCS, blocks
from tests.serve.servers import Server


def run_examples(server: Server, home: Path) -> None:
    """Every ``sh`` and ``python`` block of documents, in a directory with the files they name."""
    (home / "demo").mkdir()
    write_second(home / "demo" / "second-0.mp4", held_out_drive(1)[0])
    shell, python = (
        [code for name in ASKING_A_SERVER for code in blocks(DOCS / name, language)]
        for language in ("sh", "python")
    )
    assert len(shell) >= 4
    assert len(python) >= 3
    for code in shell:
        run(server, home, ["bash", "-euc"], code)
    for code in python:
        run(server, home, [sys.executable, "-c"], code)


def run_camera_commands(server: Server, home: Path, addresses: Mapping[str, str]) -> None:
    """Every ``sh`` block of cameras.md, with these addresses in place of its own."""
    shell = blocks(DOCS / "cameras.md", "sh")
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
