"""examples/openai_client.py against a running server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "openai_client.py"


def run(server, clip: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), server.url, str(clip), "--key", "key-south"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.engine
def test_the_first_answer_drafts_the_second_and_is_previewed(server, clips):
    said = run(server, clips / "dusk.mp4")
    first, second = (int(count) for count in re.findall(r"^(\d+) passes$", said, re.M))
    assert second < first
    is_previewed = re.compile(r"^\[memory expects: .+\]$", re.M).search
    # An answer does not wait for its previews: on a busy machine it may be complete before them.
    server.wait_until(
        lambda: is_previewed(said) or is_previewed(run(server, clips / "dusk.mp4")),
        "a preview of what is remembered",
        300,
    )
