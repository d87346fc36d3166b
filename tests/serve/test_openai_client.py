"""examples/openai_client.py against a running server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "openai_client.py"


@pytest.mark.engine
def test_the_first_answer_is_previewed_as_the_second(server, clips):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), server.url, str(clips / "dusk.mp4"), "--key", "key-south"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = (int(count) for count in re.findall(r"^(\d+) passes$", done.stdout, re.M))
    assert second < first
    assert re.search(r"^\[memory expects: .+\]$", done.stdout, re.M)
