"""The sockets between front end, drafter and scheduler: one directory, three names in it.

All are ZeroMQ over ipc with bounded queues, and nobody waits at either end: what finds no room,
or nobody at the other end, is dropped. The directory is the user's alone.
"""

import fcntl
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import zmq

from headstart.engine import wire
from headstart.errors import DraftingError

MAX_WAITING_ASKS = 8  # each holds a clip's pictures
MAX_WAITING_DRAFTS = 1024
_MAX_LINES = 1024


@dataclass(frozen=True)
class Line:
    """Where the three meet. Each end is made, used and closed by one thread."""

    directory: str

    def asks_in(self) -> "zmq.Socket[bytes]":
        """The drafter hears asks here."""
        return self._bound("asks", MAX_WAITING_ASKS, wire.MAX_ASKED_BYTES)

    def asks_out(self) -> "zmq.Socket[bytes]":
        """The front end asks here."""
        return self._connected("asks", MAX_WAITING_ASKS)

    def said_out(self) -> "zmq.Socket[bytes]":
        """The scheduler tells the drafter what was said here."""
        return self._connected("asks", MAX_WAITING_DRAFTS)

    def drafts_in(self) -> "zmq.Socket[bytes]":
        """The scheduler hears drafts here."""
        return self._bound("drafts", MAX_WAITING_DRAFTS, wire.MAX_DRAFTED_BYTES)

    def drafts_out(self) -> "zmq.Socket[bytes]":
        """The drafter hands drafts to the scheduler here."""
        return self._connected("drafts", MAX_WAITING_DRAFTS)

    def previews_in(self) -> "zmq.Socket[bytes]":
        """The front end hears what is drafted here, to show it."""
        return self._bound("previews", MAX_WAITING_DRAFTS, wire.MAX_DRAFTED_BYTES)

    def previews_out(self) -> "zmq.Socket[bytes]":
        """The drafter and the scheduler tell what they draft here."""
        return self._connected("previews", MAX_WAITING_DRAFTS)

    def _bound(self, name: str, most: int, max_bytes: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        socket.setsockopt(zmq.RCVHWM, most)
        socket.setsockopt(zmq.MAXMSGSIZE, max_bytes)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(self._address(name))
        return socket

    def _connected(self, name: str, most: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, most)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # keep nothing for somebody who is not there
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        socket.connect(self._address(name))
        return socket

    def _address(self, name: str) -> str:
        return f"ipc://{self.directory}/{name}"


def send(socket: "zmq.Socket[bytes]", message: wire.ToDrafter | wire.FromDrafter) -> bool:
    """Hand a message over at once, or not at all."""
    try:
        socket.send(wire.encode(message), zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def receive(socket: "zmq.Socket[bytes]", timeout_s: float = 0.0) -> bytes | None:
    """The next message, if one comes in time."""
    if timeout_s and not socket.poll(round(timeout_s * 1e3)):
        return None
    try:
        return socket.recv(zmq.NOBLOCK)
    except zmq.Again:
        return None


class OwnedLine:
    """A line nobody else on the machine has, until `close`.

    Its name is the lowest free one, so that an engine started again finds what vLLM compiled for
    the same settings, the name being among them.
    """

    def __init__(self, line: Line, lock: IO[bytes]) -> None:
        self.line = line
        self._lock = lock

    @classmethod
    def take(cls) -> Self:
        """Lock a free one."""
        home = Path(tempfile.gettempdir()) / f"headstart-{os.getuid()}"
        home.mkdir(mode=0o700, exist_ok=True)
        found = home.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise DraftingError(f"{home} is open to others: remove it, or set TMPDIR to another")
        for number in range(_MAX_LINES):
            directory = home / str(number)
            directory.mkdir(mode=0o700, exist_ok=True)
            lock = (directory / "lock").open("wb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            return cls(Line(str(directory)), lock)
        raise DraftingError(f"{_MAX_LINES} drafters run already: end some, or set TMPDIR")

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()
