"""Free memory: how it is read from the kernel, and refusals when it is short."""

from http import HTTPStatus
from pathlib import Path

import psutil
import pytest

from headstart_server import admission
from headstart_server.admission import MemoryPressure, free_bytes
from headstart_server.refusal import RefusedError

MIB = 1 << 20


def test_requests_are_refused_while_memory_is_short(monkeypatch):
    monkeypatch.setattr(admission, "MEMORY_EVERY_S", 0.0)
    left = [600 * MIB]
    pressure = MemoryPressure(512 * MIB, lambda: left[0])
    pressure.admit()
    left[0] = 500 * MIB
    with pytest.raises(RefusedError) as caught:
        pressure.admit()
    assert caught.value.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert caught.value.retry_after_s
    left[0] = 600 * MIB
    pressure.admit()


def test_memory_is_read_twice_a_second_at_most():
    reads = []
    pressure = MemoryPressure(1, lambda: len(reads.append(1) or reads))  # type: ignore[func-returns-value]
    for _ in range(100):
        assert not pressure.is_high
    assert len(reads) == 1


def test_free_memory_of_this_machine():
    available = psutil.virtual_memory().available
    assert 0 < free_bytes() < 1.05 * available


def written(root: Path, files: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def stat(name: str) -> str:
    return f"anon 5\n{name} {30 * MIB}\n"


CGROUPS = {
    "version 2": {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/memory.max": f"{200 * MIB}\n",
        "sys/fs/cgroup/a/memory.current": f"{130 * MIB}\n",
        "sys/fs/cgroup/a/memory.stat": stat("inactive_file"),
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/memory.current": f"{130 * MIB}\n",
        "sys/fs/cgroup/a/b/memory.stat": stat("inactive_file"),
    },
    "version 1": {
        "proc/self/cgroup": "4:cpu:/a\n3:memory:/a\n0::/\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{200 * MIB}\n",
        "sys/fs/cgroup/memory/a/memory.usage_in_bytes": f"{130 * MIB}\n",
        "sys/fs/cgroup/memory/a/memory.stat": stat("total_inactive_file"),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{130 * MIB}\n",
        "sys/fs/cgroup/memory/memory.stat": stat("total_inactive_file"),
    },
    "a container that sees only its own": {
        "proc/self/cgroup": "0::/of/the/host\n",
        "sys/fs/cgroup/memory.max": f"{200 * MIB}\n",
        "sys/fs/cgroup/memory.current": f"{130 * MIB}\n",
        "sys/fs/cgroup/memory.stat": stat("inactive_file"),
    },
}


@pytest.mark.parametrize("name", CGROUPS)
def test_a_cgroups_limit_counts_and_its_cached_files_do_not(tmp_path, name):
    assert free_bytes(written(tmp_path, CGROUPS[name])) == 100 * MIB


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_without_a_limit_the_machine_counts(tmp_path, limit):
    files = {**CGROUPS["a container that sees only its own"], "sys/fs/cgroup/memory.max": limit}
    assert free_bytes(written(tmp_path, files)) == 8_000_000 * 1024
