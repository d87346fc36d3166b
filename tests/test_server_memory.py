"""What benchmarks count as a server's memory: what it holds, not the files that it has mapped."""

import mmap
import os

import pytest

pytest.importorskip("psutil", reason="benchmarks need headstart[dev]")
from rig.server_memory import held_kib

KIB = 1 << 15


def test_memory_that_is_held_counts_and_a_mapped_file_does_not(tmp_path):
    file = tmp_path / "library"
    file.write_bytes(bytes(KIB << 10))
    before = held_kib(os.getpid())
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as library,
    ):
        assert library.find(b"x") == -1, "each of its pages is read"
        assert held_kib(os.getpid()) < before + KIB // 2
        # Of the kernel: what Python allocates may be pages that the process had before.
        with mmap.mmap(-1, KIB << 10) as held:
            held.write(bytes([1]) * (KIB << 10))
            assert held_kib(os.getpid()) > before + KIB * 3 // 4
