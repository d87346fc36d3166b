"""Takes in the drafts on a channel, in a thread, and hands each to the request it is for."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import DraftChannel, receive

_log = logging.getLogger(__name__)

_POLL_S = 0.2

OnDrafted = Callable[[messages.Drafted], None]


class DraftSubscriber:
    """Owns the listening thread until `close`. Safe to use from many threads."""

    def __init__(self, channel: DraftChannel) -> None:
        self.on_ready: Callable[[int], None] = lambda pid: None
        """Called with the process id of a draft model whose engine is up."""
        self.channel = channel
        self._subscribers: dict[str, OnDrafted] = {}
        self._closing = threading.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="drafts", daemon=True)
        self._thread.start()
        self._listening.wait()

    @contextlib.contextmanager
    def subscribe(self, request: str, on_drafted: OnDrafted) -> Iterator[None]:
        """Call ``on_drafted``, from the listening thread, with every draft for ``request``."""
        self._subscribers[request] = on_drafted
        try:
            yield
        finally:
            del self._subscribers[request]

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _listen(self) -> None:
        socket = self.channel.previews_in()
        self._listening.set()
        while not self._closing.is_set():
            data = receive(socket, _POLL_S)
            match messages.read_from_draft_model(data) if data is not None else None:
                case messages.Drafted() as drafted:
                    self._hand_on(drafted)
                case messages.Ready(pid=pid):
                    self.on_ready(pid)
        socket.close()

    def _hand_on(self, drafted: messages.Drafted) -> None:
        on_drafted = self._subscribers.get(drafted.request)
        if on_drafted is None:
            return
        try:
            on_drafted(drafted)
        except Exception:  # an error in one request must not end the thread
            _log.exception("a draft was not shown")
