"""The examples of docs/serving.md, run against a real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

from headstart_lab.answering import held_out_drive
from headstart_lab.seconds import write_second

from tests.serve.servers import Server

DOCUMENT = Path(__file__).parents[2] / "docs" / "serving.md"


def blocks(language: str) -> list[str]:
    text = DOCUMENT.read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run_examples(server: Server, home: Path) -> None:
    """Every ``sh`` and ``python`` block, in a directory with the files they name."""
    (home / "demo").mkdir()
    write_second(home / "demo" / "second-0.mp4", held_out_drive(1)[0])
    shell, python = blocks("sh"), blocks("python")
    assert len(shell) >= 2
    assert python
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    for number, code in enumerate([*shell, *python]):
        code = code.replace("http://127.0.0.1:8000", server.url).replace("sk-north", server.key)
        command = ["bash", "-euc", code] if number < len(shell) else [sys.executable, "-c", code]
        done = subprocess.run(
            command,
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
