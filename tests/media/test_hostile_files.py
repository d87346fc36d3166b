"""The promise of tests/media/fuzz.py, kept on a small part of its files in every run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

for optional in ("h5py", "hdf5plugin", "lz4", "zstandard", "faery"):
    pytest.importorskip(optional)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/clear_refs").exists() or sys.platform != "linux",
        reason="peak memory is read from Linux's /proc",
    ),
]

ROOT = Path(__file__).parents[2]


def test_hostile_files_are_read_or_refused_and_run_nothing():
    # In a process of its own: what other tests loaded into this one is not the reader's memory.
    command = ("-m", "tests.media.fuzz", "--num", "2000", "--seed", "1", "--bomb-bytes", "67108864")
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == []
    assert result["slow"] == []
    assert result["peak_resident_mib"] < 1024
    assert result["num_crafted"] > 300
    assert sum(result["outcomes"].values()) == 2000
    assert done.returncode == 0
