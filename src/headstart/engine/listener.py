"""The front end's ear: what is drafted, by anyone on the line, to whom it concerns."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from headstart.engine import wire
from headstart.engine.line import Line, receive

_log = logging.getLogger(__name__)

_POLL_S = 0.2

OnDraft = Callable[[wire.Drafted], None]


class Listener:
    """Owns the thread that listens, until `close`. Safe to use from many threads."""

    def __init__(self, line: Line) -> None:
        self.on_ready: Callable[[int], None] = lambda pid: None
        """Called with the process id of a drafter whose engine is up."""
        self._line = line
        self._concerned: dict[str, OnDraft] = {}
        self._closing = threading.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="previews", daemon=True)
        self._thread.start()
        self._listening.wait()

    @contextlib.contextmanager
    def hearing(self, ask: str, on_draft: OnDraft) -> Iterator[None]:
        """Call ``on_draft``, from the listener's thread, with what is drafted for ``ask``."""
        self._concerned[ask] = on_draft
        try:
            yield
        finally:
            del self._concerned[ask]

    def close(self) -> None:
        """Hear no more."""
        self._closing.set()
        self._thread.join()

    def _listen(self) -> None:
        socket = self._line.previews_in()
        self._listening.set()
        while not self._closing.is_set():
            data = receive(socket, _POLL_S)
            match wire.read_from_drafter(data) if data is not None else None:
                case wire.Drafted() as drafted if drafted.ask in self._concerned:
                    self._tell(drafted)
                case wire.Ready(pid=pid):
                    self.on_ready(pid)
        socket.close()

    def _tell(self, drafted: wire.Drafted) -> None:
        on_draft = self._concerned.get(drafted.ask)
        if on_draft is None:
            return
        try:
            on_draft(drafted)
        except Exception:  # one reader's mistake, not everybody's silence
            _log.exception("a draft was not shown")
