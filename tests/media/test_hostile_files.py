"""The promise of tests/media/fuzz.py, kept on a small part of its files in every run."""

import sys
from pathlib import Path

import pytest

for optional in ("h5py", "hdf5plugin", "lz4", "zstandard", "faery"):
    pytest.importorskip(optional)
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists() or sys.platform != "linux",
    reason="peak memory is read from Linux's /proc",
)

from tests.media.fuzz import MAX_RESIDENT_MIB, run


def test_hostile_files_are_read_or_refused_and_run_nothing():
    result = run(num_files=2000, seed=1, bomb_bytes=64 << 20)
    assert result["failures"] == []
    assert result["slow"] == []
    assert result["peak_resident_mib"] < MAX_RESIDENT_MIB
    assert result["num_crafted"] > 300
    assert sum(result["outcomes"].values()) == 2000
