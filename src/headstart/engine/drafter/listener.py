"""Hears the drafts on a channel, in a thread, and hands each to the request it is for."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import DraftChannel, receive

_log = logging.getLogger(__name__)

_POLL_S = 0.2

OnDrafted = Callable[[messages.Drafted], None]


class DraftListener:
    """Owns the listening thread until `close`. Safe to use from many threads."""

    def __init__(self, channel: DraftChannel) -> None:
        self.on_ready: Callable[[int], None] = lambda pid: None
        """Called with the process id of a drafter whose engine is up."""
        self._channel = channel
        self._listeners: dict[str, OnDrafted] = {}
        self._closing = threading.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="drafts", daemon=True)
        self._thread.start()
        self._listening.wait()

    @contextlib.contextmanager
    def hearing(self, request: str, on_drafted: OnDrafted) -> Iterator[None]:
        """Call ``on_drafted``, from the listening thread, with every draft for ``request``."""
        self._listeners[request] = on_drafted
        try:
            yield
        finally:
            del self._listeners[request]

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()

    def _listen(self) -> None:
        socket = self._channel.previews_in()
        self._listening.set()
        while not self._closing.is_set():
            data = receive(socket, _POLL_S)
            match messages.read_from_drafter(data) if data is not None else None:
                case messages.Drafted() as drafted:
                    self._hand_on(drafted)
                case messages.Ready(pid=pid):
                    self.on_ready(pid)
        socket.close()

    def _hand_on(self, drafted: messages.Drafted) -> None:
        on_drafted = self._listeners.get(drafted.request)
        if on_drafted is None:
            return
        try:
            on_drafted(drafted)
        except Exception:  # an error in one request must not end the thread
            _log.exception("a draft was not shown")
