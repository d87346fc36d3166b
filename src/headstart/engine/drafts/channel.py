"""The draft channel: the sockets between front end, draft model and scheduler, in one directory.

All are ZeroMQ over ipc with bounded queues. A message is sent at once or dropped: no end waits for
another. Only the user may enter the directory.
"""

import fcntl
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import zmq

from headstart.engine.drafts import messages
from headstart.errors import DraftingError

MAX_WAITING_ASKS = 8  # each holds a clip's pictures
MAX_WAITING_DRAFTS = 1024
_MAX_CHANNELS = 1024


@dataclass(frozen=True)
class DraftChannel:
    """One directory with three sockets. Each end is made, used and closed by one thread."""

    directory: str

    def asks_in(self) -> "zmq.Socket[bytes]":
        """Where a draft model hears what to draft."""
        return self._bound("asks", MAX_WAITING_ASKS, messages.MAX_ASKED_BYTES)

    def asks_out(self) -> "zmq.Socket[bytes]":
        """Where the front end asks the draft model."""
        return self._connected("asks", MAX_WAITING_ASKS)

    def said_out(self) -> "zmq.Socket[bytes]":
        """Where the scheduler tells the draft model what the target said."""
        return self._connected("asks", MAX_WAITING_DRAFTS)

    def drafts_in(self) -> "zmq.Socket[bytes]":
        """Where the scheduler hears drafts, and what a tower beside the target saw."""
        return self._bound("drafts", MAX_WAITING_DRAFTS, messages.MAX_SEEN_BYTES)

    def drafts_out(self) -> "zmq.Socket[bytes]":
        """Where a draft model hands drafts, or what its tower saw, to the scheduler."""
        return self._connected("drafts", MAX_WAITING_DRAFTS)

    def previews_in(self) -> "zmq.Socket[bytes]":
        """Where the front end hears drafts, to show them."""
        return self._bound("previews", MAX_WAITING_DRAFTS, messages.MAX_DRAFTED_BYTES)

    def previews_out(self) -> "zmq.Socket[bytes]":
        """Where the draft model and the scheduler tell the front end of drafts."""
        return self._connected("previews", MAX_WAITING_DRAFTS)

    def _bound(self, name: str, most: int, max_bytes: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        socket.setsockopt(zmq.RCVHWM, most)
        socket.setsockopt(zmq.MAXMSGSIZE, max_bytes)
        socket.setsockopt(zmq.LINGER, 0)
        directory = Path(self.directory)
        if directory.parent == _home():
            channel_home()
        directory.mkdir(mode=0o700, exist_ok=True)
        socket.bind(self._address(name))
        return socket

    def _connected(self, name: str, most: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, most)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # keep nothing for a peer that is not there
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(self._address(name))
        return socket

    def _address(self, name: str) -> str:
        return f"ipc://{self.directory}/{name}"


def send(
    socket: "zmq.Socket[bytes]", message: messages.ToDraftModel | messages.FromDraftModel
) -> bool:
    try:
        socket.send(messages.encode(message), zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def receive(socket: "zmq.Socket[bytes]", timeout_s: float = 0.0) -> bytes | None:
    if timeout_s and not socket.poll(round(timeout_s * 1e3)):
        return None
    # `recv` lets other threads run even if nothing is there, and may wait a millisecond for its
    # turn again. The scheduler asks before every step.
    if not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
        return None
    try:
        return socket.recv(zmq.NOBLOCK)
    except zmq.Again:
        return None


def channel_home() -> Path:
    """Where the channels of this user are; made where it is not. Nobody else may enter it."""
    home = _home()
    home.mkdir(mode=0o700, exist_ok=True)
    found = home.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise DraftingError(f"{home} is open to others: remove it, or set TMPDIR to another")
    return home


def _home() -> Path:
    return Path(tempfile.gettempdir()) / f"headstart-{os.getuid()}"


class ChannelLease:
    """A channel that no other process on the machine has, until `close`.

    Its directory has the lowest free number, so that an engine started again finds what vLLM
    compiled for the same settings, the directory being among them.
    """

    def __init__(self, channel: DraftChannel, lock: IO[bytes]) -> None:
        self.channel = channel
        self._lock = lock

    @classmethod
    def take(cls) -> Self:
        home = channel_home()
        for number in range(_MAX_CHANNELS):
            directory = home / str(number)
            directory.mkdir(mode=0o700, exist_ok=True)
            lock = (directory / "lock").open("wb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            return cls(DraftChannel(str(directory)), lock)
        raise DraftingError(
            f"{_MAX_CHANNELS} engines with drafts run already: end some, or set TMPDIR"
        )

    def close(self) -> None:
        """Let other processes have it."""
        self._lock.close()
