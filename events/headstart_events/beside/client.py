"""The front end's end of an event model: it starts the model's process, and sends it clips.

The front end never waits for it. A thread renders clips as the model sees them and sends them off.
Where a queue is full, or the process is dead, stopped or not up yet, the request is answered
without it.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Iterator, Mapping

import zmq

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import send
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.engine.model import Model
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.errors import MediaError
from headstart_events.beside.process import EventModelProcess
from headstart_events.beside.spec import EventModelSpec, pictures_view
from headstart_events.beside.worth import DraftWorth

_log = logging.getLogger(__name__)

MAX_WAITING = 64
CONNECT_S = 1.0
START_TIMEOUT_S = 600.0

_Sent = tuple[str, Question] | messages.Leave


class EventModelClient:
    """A `RunningDraftModel`: owns a process and a sending thread. Safe to use from many threads.

    It sends every clip there is: what a tower sees is of use to a bridge, which is judged by
    itself.
    """

    def __init__(
        self, spec: EventModelSpec, drafts: DraftSubscriber, environment: Mapping[str, str]
    ) -> None:
        """Start the process. Returns before its engine is up."""
        self._channel = spec.channel
        self._waiting: queue.Queue[_Sent | None] = queue.Queue(MAX_WAITING)
        self._alive: set[str] = set()
        self._view = pictures_view(Model.checked(spec.model))
        self.process = EventModelProcess(spec, environment)
        drafts.on_ready = self.process.ready
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    @property
    def is_up(self) -> bool:
        return self.process.is_ready

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when it can draft; raise an `EngineStartError` if it cannot."""
        self.process.wait_ready(timeout_s)

    @contextlib.contextmanager
    def drafting(self, question: Question, record: RequestRecord) -> Iterator[None]:
        """Have the model look, and draft, until the block is left."""
        if question.clip is None:
            yield
            return
        request = record.request_id
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

    def _send(self) -> None:
        socket, connected_to = self._channel.asks_out(), None
        while (item := self._waiting.get()) is not None:
            if isinstance(item, messages.Leave):
                send(socket, item)
                continue
            request, question = item
            if not self.process.is_ready or request not in self._alive:
                continue
            if connected_to != self.process.pid:
                # A process that has just started binds its socket before this one has connected.
                socket.poll(round(CONNECT_S * 1e3), zmq.POLLOUT)
                connected_to = self.process.pid
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
            return  # the clip holds nothing that the model could look at
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
        self.process.close()
        self._waiting.put(None)
        self._thread.join()


class DraftModelClient(EventModelClient):
    """Of a model that says words: it is asked where they may be the target's, and may pay."""

    def __init__(
        self,
        spec: EventModelSpec,
        drafts: DraftSubscriber,
        environment: Mapping[str, str],
        *,
        abstain: bool,
    ) -> None:
        super().__init__(spec, drafts, environment)
        self._worth = DraftWorth() if abstain else None

    @contextlib.contextmanager
    def drafting(self, question: Question, record: RequestRecord) -> Iterator[None]:
        """Have the model draft until the block is left, and judge what became of its drafts."""
        # It speaks prose, of which no grammar lets a word through.
        is_asked = question.clip is not None and question.is_free
        worth = self._judging(question)
        if not is_asked or (worth is not None and not worth.is_wanted(question.stream)):
            yield
            return
        with super().drafting(question, record):
            try:
                yield
            finally:
                if worth is not None and record.report is not None:
                    worth.judge(record.stream, record.verdicts)

    def _judging(self, question: Question) -> DraftWorth | None:
        """What judges the answer, if it counts for what the model is worth on its stream.

        Not while the model is down, nor where its drafts are shown whether they pay or not.
        """
        is_judged = self.is_up and question.stream is not None and not question.previews
        return self._worth if is_judged else None
