"""Refuses new requests while the machine, or the cgroup of this process, is short of memory.

Otherwise the kernel would kill the process, and with it every request.
"""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

from headstart_server import metrics
from headstart_server.refusal import RefusedError

CHECK_EVERY_S = 0.5
RETRY_AFTER_S = 5
# A cgroup of version 1 without a limit states one of about 2 ** 63.
_NO_LIMIT = 1 << 60


class MemoryPressure:
    """Reads free memory at most every `CHECK_EVERY_S`. Used from one event loop only."""

    def __init__(self, min_free_bytes: int, free_bytes: Callable[[], int]) -> None:
        self._min_free_bytes = min_free_bytes
        self._free_bytes = free_bytes
        self._last_bytes = free_bytes()
        self._checked_s = time.monotonic()

    @property
    def free_bytes(self) -> int:
        """Free memory, as of half a second ago at most."""
        if time.monotonic() - self._checked_s >= CHECK_EVERY_S:
            self._checked_s = time.monotonic()
            self._last_bytes = self._free_bytes()
        return self._last_bytes

    @property
    def is_high(self) -> bool:
        """Whether too little memory is free to admit another request."""
        return self.free_bytes < self._min_free_bytes

    def admit(self) -> None:
        if self.is_high:
            metrics.TURNED_AWAY.labels("memory").inc()
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this server is short of memory; ask again in {RETRY_AFTER_S} s",
                RETRY_AFTER_S,
            )


def free_bytes(root: Path = Path("/")) -> int:
    """How much this process may still take: the least that the machine and its cgroups have."""
    return min((_machine(root), *_cgroups(root)))


def _machine(root: Path) -> int:
    try:
        return _fields(root / "proc/meminfo")["MemAvailable:"] * 1024
    except (OSError, KeyError, ValueError):
        return _NO_LIMIT  # not Linux: free memory is unknown, so no request is refused


def _cgroups(root: Path) -> Iterator[int]:
    """Free memory of each cgroup of this process, version 2 and version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            mounts = [root / "sys/fs/cgroup/memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        for mount in mounts:
            # A parent's limit counts too. Inside a container the path may be the host's: missing
            # directories are skipped, and the mount's own directory is the container's.
            inside = mount / path.lstrip("/")
            for directory in (inside, *inside.parents):
                if directory.is_relative_to(mount):
                    yield _left(directory, *names)


def _left(directory: Path, limit: str, used: str, reclaimable: str) -> int:
    try:
        most = int((directory / limit).read_text())  # "max" is no number
        if most >= _NO_LIMIT:
            return _NO_LIMIT  # reading the other files takes the kernel a millisecond
        taken = int((directory / used).read_text())
        # Cached files count as used, but the kernel drops them before it kills a process.
        cached = _fields(directory / "memory.stat").get(reclaimable, 0)
    except (OSError, ValueError):
        return _NO_LIMIT
    return most - taken + cached


def _fields(path: Path) -> dict[str, int]:
    """Read a file of lines that are a name and a number."""
    return {words[0]: int(words[1]) for words in map(str.split, path.read_text().splitlines())}
