"""How much memory is left, for this machine and for the cgroup this process is in.

The kernel ends a process when there is none left, and with it every request. Before that, new
requests are sent away.
"""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

from headstart.serve import figures
from headstart.serve.refusal import RefusedError

LOOK_EVERY_S = 0.5
RETRY_AFTER_S = 5
# A cgroup of version 1 without a limit has one of about 2 ** 63.
_NO_LIMIT = 1 << 60


class Pressure:
    """Looks when asked, and not more often than is of use. Used from one event loop only."""

    def __init__(self, min_free_bytes: int, free_bytes: Callable[[], int]) -> None:
        self._min_free_bytes = min_free_bytes
        self._free_bytes = free_bytes
        self._found = free_bytes()
        self._looked_s = time.monotonic()

    @property
    def free_bytes(self) -> int:
        """Half a second ago at most."""
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._found = self._free_bytes()
        return self._found

    @property
    def is_high(self) -> bool:
        """Whether so little is left that nobody else should come in."""
        return self.free_bytes < self._min_free_bytes

    def admit(self) -> None:
        """Raise a refusal while memory is short."""
        if self.is_high:
            figures.TURNED_AWAY.labels("memory").inc()
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this server is short of memory; ask again in {RETRY_AFTER_S} s",
                RETRY_AFTER_S,
            )


def free_bytes(root: Path = Path("/")) -> int:
    """What this process may still take: the least of what the machine and its cgroups have."""
    return min((_machine(root), *_cgroups(root)))


def _machine(root: Path) -> int:
    try:
        return _fields(root / "proc/meminfo")["MemAvailable:"] * 1024
    except (OSError, KeyError, ValueError):
        return _NO_LIMIT  # not Linux: nothing is known, so nobody is sent away


def _cgroups(root: Path) -> Iterator[int]:
    """What each cgroup of this process leaves it, version 2 and version 1."""
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
            # A limit above counts too. Inside a container the path may be the host's: what is
            # not there is skipped, and the mount's own directory is the container's.
            inside = mount / path.lstrip("/")
            for directory in (inside, *inside.parents):
                if directory.is_relative_to(mount):
                    yield _left(directory, *names)


def _left(directory: Path, limit: str, used: str, reclaimable: str) -> int:
    """What a cgroup has left of its limit."""
    try:
        most = int((directory / limit).read_text())  # "max" is no number
        if most >= _NO_LIMIT:
            return _NO_LIMIT  # the kernel takes a millisecond to say the rest
        taken = int((directory / used).read_text())
        # Cached files count as used and are given up before anybody is ended.
        cached = _fields(directory / "memory.stat").get(reclaimable, 0)
    except (OSError, ValueError):
        return _NO_LIMIT
    return most - taken + cached


def _fields(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    return {words[0]: int(words[1]) for words in map(str.split, path.read_text().splitlines())}
