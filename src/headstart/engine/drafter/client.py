"""The front end's end of the draft channel: it asks the drafter, and hears all drafts.

The front end never waits for the drafter. A thread renders clips as the drafter sees them and sends
them off. Where a queue is full, or the drafter is dead, stopped or not up yet, the request is
answered without it.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Iterator
from typing import Self

import zmq

from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import DraftChannel, send
from headstart.engine.drafter.listener import DraftListener, OnDrafted
from headstart.engine.drafter.placement import EngineResources
from headstart.engine.drafter.process import DrafterProcess
from headstart.engine.drafter.spec import DrafterSpec
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, EventTower
from headstart.engine.question import Question
from headstart.errors import MediaError

_log = logging.getLogger(__name__)

MAX_WAITING = 64
CONNECT_S = 1.0
START_TIMEOUT_S = 600.0

_Sent = tuple[str, Question] | messages.Leave


class DrafterClient:
    """Owns the listening thread and, where there is a drafter, its process and a sending thread.

    Safe to use from many threads.
    """

    def __init__(
        self,
        channel: DraftChannel,
        drafter: EventDrafter | EventTower | None = None,
        resources: EngineResources = EngineResources(),  # noqa: B008 - frozen
    ) -> None:
        """Start the drafter's process, if any. Returns before its engine is up."""
        self._channel = channel
        self._waiting: queue.Queue[_Sent | None] = queue.Queue(MAX_WAITING)
        self._alive: set[str] = set()
        self.process: DrafterProcess | None = None
        self.speaks = isinstance(drafter, EventDrafter)
        """Whether there is a drafter that drafts, and not only a tower or none."""
        with contextlib.ExitStack() as undo:
            self._listener = DraftListener(channel)
            undo.callback(self._listener.close)
            if drafter is not None:
                self._view = Model.checked(drafter.model).drafter_view
                spec = _spec(drafter, channel, resources)
                self.process = DrafterProcess(spec, resources.environment)
                self._listener.on_ready = self.process.ready
                thread = threading.Thread(target=self._send, args=[self.process], daemon=True)
                thread.start()
                undo.callback(thread.join)
                undo.callback(self._waiting.put, None)
                undo.callback(self.process.close)
            self._ending = undo.pop_all()

    @property
    def is_up(self) -> bool:
        """Whether there is a drafter, and its engine is up now."""
        return self.process is not None and self.process.is_ready

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when the drafter, if any, can draft; raise an `EngineStartError` if it cannot."""
        if self.process is not None:
            self.process.wait_ready(timeout_s)

    @contextlib.contextmanager
    def hearing(self, request: str, on_drafted: OnDrafted) -> Iterator[None]:
        """Call ``on_drafted``, from a thread, with every draft for a request."""
        with self._listener.hearing(request, on_drafted):
            yield

    @contextlib.contextmanager
    def drafting(self, request: str, question: Question) -> Iterator[None]:
        """Have the drafter draft the answer until the block is left."""
        self._alive.add(request)
        self._put((request, question))
        try:
            yield
        finally:
            self._alive.discard(request)
            self._put(messages.Leave(request))

    def _put(self, item: _Sent) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(item)

    def _send(self, process: DrafterProcess) -> None:
        socket, connected_to = self._channel.asks_out(), None
        while (item := self._waiting.get()) is not None:
            if isinstance(item, messages.Leave):
                send(socket, item)
                continue
            request, question = item
            if not process.is_ready or request not in self._alive:
                continue
            if connected_to != process.pid:
                # A drafter that has just started binds its socket before this one has connected.
                socket.poll(round(CONNECT_S * 1e3), zmq.POLLOUT)
                connected_to = process.pid
            try:
                self._send_ask(socket, request, question)
            except Exception:  # one clip that cannot be rendered, not all that follow
                _log.exception("a request is not drafted")
        socket.close()

    def _send_ask(self, socket: "zmq.Socket[bytes]", request: str, question: Question) -> None:
        if question.clip is None:
            return
        asked_s = time.monotonic()
        try:
            pictures = self._view.pictures(self._view.glance(question.clip))
        except MediaError:
            return  # the clip holds nothing that the drafter could look at
        message = messages.Ask(
            request,
            question.words,
            pictures.shape,
            pictures.tobytes(),
            question.max_tokens,
            asked_s,
        )
        send(socket, message)

    def close(self) -> None:
        """End the process and the threads."""
        self._ending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _spec(
    drafter: EventDrafter | EventTower, channel: DraftChannel, resources: EngineResources
) -> DrafterSpec:
    model, arguments = str(drafter.model), {**drafter.vllm, **resources.arguments}
    if isinstance(drafter, EventTower):
        from headstart.engine.feature_tap import tap_arguments  # needs the engine

        arguments |= tap_arguments(drafter.vllm, tower_only=True)
        return DrafterSpec(model, arguments, 0, channel, resources.cores, tower_only=True)
    return DrafterSpec(model, arguments, drafter.max_tokens, channel, resources.cores)
