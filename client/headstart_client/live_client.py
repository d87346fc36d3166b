"""A client of the server's live socket. It needs no engine, only the package `websockets`.

    with LiveClient("ws://127.0.0.1:8000", key="sk-...", stream="front", window_s=2.0,
                    question="What is happening?") as live:
        threading.Thread(target=send_frames, args=(live,)).start()   # live.send(frame, time_us)
        for answer in live:
            print(answer.number, answer.text)

A connection that breaks is made again, and no answer is lost or comes twice. With ``moves``, a
camera whose server is gone begins again at the same address, where a router leads to another one.
"""

import contextlib
import io
import itertools
import json
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, fields
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from headstart.errors import LiveError
from headstart.media.events import Events
from headstart_client import wire
from headstart_client.wire import WINDOW_S, CloseCode, Media, MediaKind, pack_events

OPEN_S = 20.0
"""How long a server may take to answer."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
"""Between two attempts to connect again."""
JPEG_QUALITY = 90
Message = dict[str, Any]
_log = logging.getLogger("headstart")


@dataclass(frozen=True)
class LiveAnswer:
    """What the target said about a window, and how long after its last frame."""

    start_us: int
    """The window's, on the camera's clock."""
    stop_us: int
    num_frames: int
    text: str
    finish_reason: str
    first_token_s: float
    """From the last frame's arrival at the server to the first token."""
    wait_s: float
    """And to the last word."""
    num_passes: int
    num_tokens: int
    accepted: int
    """Tokens that were drafted before the target said them."""
    number: int = 0
    """Answers to the standing question are counted from 1; 0 for another question."""

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> "LiveAnswer":
        """Of the server's message; fields that this version does not know are left out."""
        known = [field.name for field in fields(cls)]
        return cls(**{name: message[name] for name in known if name in message})


class LiveClient:
    """One camera. Sending, `ask` and the iterator may be used from any thread."""

    def __init__(
        self,
        url: str,
        *,
        stream: str,
        window_s: float = WINDOW_S,
        step_s: float | None = None,
        question: str | None = None,
        key: str = "",
        schema: Mapping[str, Any] | None = None,
        system: str = "",
        max_tokens: int = 256,
        when: Literal["always", "changed"] = "always",
        at_least_s: float | None = None,
        simulate_events: bool = False,
        sensor: str | None = None,
        codec: Literal["h264", "h265"] | None = None,
        on_words: Callable[[Mapping[str, Any]], None] | None = None,
        moves: bool = False,
    ) -> None:
        """Connect and begin. ``url`` is the server's: ``ws://host:port``, or ``wss:``.

        ``on_words`` gets the messages ``preview``, ``confirmed`` and ``retracted``, in a thread of
        the client's. With ``moves``, the camera outlives its server; windows that the server had
        begun and not answered are lost, and numbers go on. The other arguments are the fields of
        ``start`` in docs/reference/websocket.md.
        """
        start: Message = {
            "stream": stream,
            "window_s": window_s,
            "step_s": step_s,
            "question": question,
            "schema": None if schema is None else dict(schema),
            "system": system,
            "max_tokens": max_tokens,
            "when": when,
            "at_least_s": at_least_s,
            "simulate_events": simulate_events,
            "sensor": sensor,
            "codec": codec,
            "previews": on_words is not None,
        }
        self._address = address_of(url)
        self._key, self._on_words, self._moves = key, on_words, moves
        given = {name: value for name, value in start.items() if value not in (None, "", False)}
        self._start = {"type": "start", **given}
        self._answers: queue.SimpleQueue[LiveAnswer | LiveError | None] = queue.SimpleQueue()
        self._asked: dict[str, Future[LiveAnswer]] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._connection: Any = None
        self._last = 0
        self._num_before = 0  # answers of servers that are gone
        self._is_closed = False
        self._is_ending = False
        self.counts: Mapping[str, Any] = {}
        """What became of frames and windows, as the server told it last."""
        self.num_unsent = 0
        """Frames and events that were to be sent while there was no connection."""
        self.num_resumed = 0
        """How often a broken connection was made again."""
        self.num_moved = 0
        """How often the camera began again because its server was gone."""
        try:
            self.started: Mapping[str, Any] = self._connect(self._start)
        except OSError as error:
            advice = "check the address, and that the server is ready"
            raise LiveError(f"{self._address} cannot be reached ({error}): {advice}") from error
        self._thread = threading.Thread(target=self._listen, name="live client", daemon=True)
        self._thread.start()

    def send(
        self, frame: NDArray[np.uint8] | bytes, time_us: int, events: Events | None = None
    ) -> bool:
        """Send a frame, and the events since the one before; returns whether it went out.

        ``frame`` is a JPEG, PNG or WebP, or uint8 RGB [height, width, 3], which becomes a JPEG.
        While the connection is broken frames are left out: the server does not see them later.
        """
        picture = frame if isinstance(frame, bytes) else _jpeg(frame)
        return self._send_frame(Media(MediaKind.PICTURE, time_us, picture), events)

    def send_encoded(self, packet: bytes, time_us: int, events: Events | None = None) -> bool:
        """Send a frame as the encoder of ``codec`` gives it; returns whether it went out.

        ``packet`` is one picture with start codes (Annex B), a key picture with its parameter sets.
        Encode without B-frames. After frames that did not go out, the server needs a key picture.
        """
        return self._send_frame(Media(MediaKind.ENCODED, time_us, packet), events)

    def _send_frame(self, frame: Media, events: Events | None) -> bool:
        messages = [frame]
        if events is not None and len(events):
            messages.insert(0, Media(MediaKind.EVENTS, frame.time_us, pack_events(events)))
        sent = all(self._send(message.pack()) for message in messages)
        self.num_unsent += not sent
        return sent

    def ask(self, question: str, *, max_tokens: int = 256, timeout_s: float = 300.0) -> LiveAnswer:
        """Ask about the current window, and wait for the answer."""
        name, answer = str(next(self._ids)), Future[LiveAnswer]()
        self._asked[name] = answer
        message = {"type": "ask", "id": name, "question": question, "max_tokens": max_tokens}
        try:
            if not self._send(json.dumps(message)):
                raise LiveError("the connection is broken just now; ask again")
            return answer.result(timeout_s)
        except TimeoutError as error:
            raise LiveError(f"no answer within {timeout_s:g} s; ask again") from error
        finally:
            self._asked.pop(name, None)

    def end(self) -> None:
        """No more frames come. The iterator ends after the last answer."""
        self._is_ending = True
        self._send('{"type": "end"}')

    def __iter__(self) -> Iterator[LiveAnswer]:
        return self

    def __next__(self) -> LiveAnswer:
        """The next answer to the standing question. Raises `LiveError` if the server refuses."""
        answer = self._answers.get()
        if answer is None or isinstance(answer, LiveError):
            self._answers.put(answer)  # for whoever asks again
            raise StopIteration if answer is None else answer
        if (number := answer.number - self._num_before) > 0:
            self._send(json.dumps({"type": "ack", "number": number}))
        return answer

    def close(self) -> None:
        """Leave at once; answers that have not been read are lost."""
        self._is_closed = True
        self._disconnect()
        self._thread.join(OPEN_S)
        self._answers.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _send(self, message: str | bytes) -> bool:
        if (connection := self._connection) is None:
            return False
        try:
            connection.send(message)
        except _broken():
            return False
        return True

    def _connect(self, first: Message) -> Message:
        """Make a connection and say ``first``; returns what the server says to it."""
        connection = connect_to(self._address, self._key, self._start["stream"])
        try:
            connection.send(json.dumps(first))
            started: Message = json.loads(connection.recv(OPEN_S))
        except _broken() as error:
            connection.close()
            raise OSError(f"the connection broke while it was made: {error}") from error
        if started["type"] != "started":
            connection.close()
            raise LiveError(str(started.get("message", started)))
        with self._lock:
            self._connection = connection
        return started

    def _disconnect(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        try:
            while not self._hear() and not self._is_closed and self._again():
                pass
        except LiveError as error:
            self._answers.put(error)
        except Exception as error:
            self._answers.put(LiveError(f"the client failed: {error!r}; start again"))
        finally:
            self._disconnect()
            self._answers.put(None)
            self._give_up_questions()

    def _hear(self) -> bool:
        """Until the connection ends; returns whether the server has ended the camera."""
        with contextlib.suppress(*_broken()):
            for message in self._connection:
                if self._take(json.loads(message)):
                    return True
        is_going = getattr(self._connection, "close_code", None) == CloseCode.GOING_AWAY
        if is_going and not self._moves:
            raise LiveError("the server is being stopped; start again later, or with another")
        return False

    def _again(self) -> bool:
        """Resume the camera over a new connection; returns whether there is one."""
        self._give_up_questions()
        deadline_s = time.monotonic() + float(self.started["limits"]["resume_s"])
        pause_s = FIRST_PAUSE_S
        while not self._is_closed:
            try:
                self._resume()
                if self._is_ending:
                    self.end()  # it may not have arrived
                return True
            except OSError as error:
                if time.monotonic() > deadline_s:
                    gone = f"{self._address} cannot be reached any more: {error}"
                    raise LiveError(gone) from error
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    def _resume(self) -> None:
        """Go on with the same camera; if no server knows it any more, begin again."""
        resume = {"type": "resume", "token": self.started["token"], "number": self._last}
        try:
            self._connect(resume)
            self.num_resumed += 1
        except LiveError:
            if not self._moves:
                raise
            try:
                self.started = self._connect(self._start)
            except LiveError as error:
                raise OSError(str(error)) from error  # a full or draining server: try again
            self.num_moved += 1
            self._num_before, self._last = self._num_before + self._last, 0

    def _take(self, message: Message) -> bool:
        """One message of the server; returns whether it was the last."""
        match message["type"]:
            case "answer" if "number" in message:
                if message["number"] > self._last:
                    self._last = message["number"]
                    number = self._num_before + self._last
                    self._answers.put(LiveAnswer.parse({**message, "number": number}))
            case "answer":
                if (asked := self._asked.pop(message["id"], None)) is not None:
                    asked.set_result(LiveAnswer.parse(message))
            case "preview" | "confirmed" | "retracted":
                if self._on_words is not None:
                    self._on_words(message)
            case "counts":
                self.counts = message
            case "error":
                error = LiveError(message["message"])
                if message["is_last"]:
                    raise error
                if (asked := self._asked.pop(message.get("id", ""), None)) is not None:
                    asked.set_exception(error)
                else:
                    _log.warning("the server says: %s", error)
            case "ended":
                # A server that is being stopped says so too; then another one goes on.
                return self._is_ending or not self._moves
        return False

    def _give_up_questions(self) -> None:
        for name in list(self._asked):
            if (asked := self._asked.pop(name, None)) is not None:
                asked.set_exception(LiveError("the connection broke before the answer; ask again"))


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    PIL.Image.fromarray(frame).save(content, "JPEG", quality=JPEG_QUALITY)
    return content.getvalue()


def address_of(url: str) -> str:
    """The live socket of a server."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not parts.hostname or parts.path not in ("", "/", wire.PATH):
        raise LiveError(f"{url!r} is no server's address: give ws://HOST:PORT or wss://HOST:PORT")
    return f"{scheme}://{parts.netloc}{wire.PATH}"


def _broken() -> tuple[type[Exception], ...]:
    """What a connection raises that breaks, a server that is late included."""
    from websockets.exceptions import ConnectionClosed

    return ConnectionClosed, OSError


def connect_to(address: str, key: str, stream: str) -> Any:
    """An open connection. Raises `LiveError` if the server refuses, `OSError` if there is none.

    The header ``X-Session-ID`` names the stream, for a router that keeps streams to servers.
    """
    try:
        from websockets.exceptions import InvalidHandshake, InvalidStatus
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol
    except ImportError as error:
        needed = "the live client needs websockets: pip install 'headstart[client]'"
        raise LiveError(needed) from error
    authorized = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        return connect(
            address,
            subprotocols=[Subprotocol(wire.SUBPROTOCOL)],
            additional_headers={"X-Session-ID": quote(stream), **authorized},
            compression=None,
            open_timeout=OPEN_S,
        )
    except InvalidStatus as error:
        raise LiveError(_refusal(error.response.status_code, error.response.body)) from error
    except InvalidHandshake as error:
        raise LiveError(f"{address} is no live socket of headstart: {error}") from error


def _refusal(status: int, body: bytes | bytearray | None) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body or b"")["error"]["message"])
    return f"the server refused with status {status}; see whether it is headstart's"
