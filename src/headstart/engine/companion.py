"""The drafter as the front end knows it: told of each ask, never waited for.

A thread draws clips as the drafter sees them and sends them off. Where a queue is full, or the
drafter is dead, stopped or not up yet, the ask is answered without it.
"""

import contextlib
import logging
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import zmq

from headstart.engine import wire
from headstart.engine.drafter_process import DrafterProcess
from headstart.engine.drafter_spec import DrafterSpec
from headstart.engine.line import Line, send
from headstart.engine.listener import Listener, OnDraft
from headstart.engine.options import EventDrafter
from headstart.engine.placement import Seat
from headstart.errors import MediaError
from headstart.media.clip import Clip
from headstart.models.view import View

_log = logging.getLogger(__name__)

MAX_WAITING = 64
START_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class _Asked:
    ask: str
    clip: Clip
    question: str
    max_tokens: int


class Companion:
    """A drafter's process and the ways to it. Safe to use from many threads."""

    def __init__(
        self,
        drafter: EventDrafter,
        view: View,
        line: Line,
        listener: Listener,
        seat: Seat,
    ) -> None:
        """Start the process; ``view`` is the drafter's own. Returns before its engine is up."""
        self._view = view
        self._line = line
        self._listener = listener
        self._waiting: queue.Queue[_Asked | wire.Leave | None] = queue.Queue(MAX_WAITING)
        self._alive: set[str] = set()
        arguments = {**drafter.vllm, **seat.arguments}
        model, most = str(drafter.model), drafter.max_tokens
        spec = DrafterSpec(model, arguments, most, line, seat.cores)
        self.process = DrafterProcess(spec, seat.environment)
        listener.on_ready = self.process.ready
        self._thread = threading.Thread(target=self._send, name="asks", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when it can draft; raise an `EngineStartError` if it cannot."""
        self.process.wait_ready(timeout_s)

    @contextlib.contextmanager
    def drafting(
        self, clip: Clip, question: str, max_tokens: int, on_draft: OnDraft
    ) -> Iterator[str]:
        """The drafter drafts until the block is left. Yields the ask's name.

        Nothing here waits, nor fails where the drafter does; ``on_draft`` is called from a thread.
        """
        ask = uuid.uuid4().hex
        self._alive.add(ask)
        self._put(_Asked(ask, clip, question, max_tokens))
        with self._listener.hearing(ask, on_draft):
            try:
                yield ask
            finally:
                self._alive.discard(ask)
                self._put(wire.Leave(ask))

    def _put(self, item: "_Asked | wire.Leave") -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(item)

    def _send(self) -> None:
        socket = self._line.asks_out()
        while (item := self._waiting.get()) is not None:
            if isinstance(item, wire.Leave):
                send(socket, item)
            elif self.process.is_ready and item.ask in self._alive:
                try:
                    self._send_ask(socket, item)
                except Exception:  # one clip that cannot be drawn, not all that follow
                    _log.exception("an ask is not drafted")
        socket.close()

    def _send_ask(self, socket: "zmq.Socket[bytes]", asked: _Asked) -> None:
        asked_s = time.monotonic()
        try:
            pictures = self._view.pictures(self._view.glance(asked.clip))
        except MediaError:
            return  # nothing in the clip that the drafter could look at
        message = wire.Ask(
            asked.ask,
            asked.question,
            pictures.shape,
            pictures.tobytes(),
            asked.max_tokens,
            asked_s,
        )
        send(socket, message)

    def close(self) -> None:
        """End the process and the thread."""
        self.process.close()
        self._waiting.put(None)
        self._thread.join()
