"""Cameras that show windows at their pace: over live sockets, and as videos to vLLM's own server.

Both are shown the same frames of the same windows, and are timed alike: from the moment at which
the window's last frame is sent to the moment at which the client has the last word.
"""

import base64
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from headstart.errors import LiveError
from headstart_client.live_client import LiveClient
from rig.film import Film
from rig.servers import CHAT, Server, asking
from rig.watchers import Waits

MAX_TOKENS = 64
AT_ONCE = 8
PATIENCE_S = 300.0
UNANSWERED = ("skipped", "dropped", "unread", "lost")
"""What may become of a window besides an answer."""

WindowName = tuple[int, int]
"""The number of a camera, and that of its window in its film."""


@dataclass(frozen=True)
class Slot:
    """One frame, at the moment at which it is to be sent."""

    window: int
    time_us: int
    picture: bytes
    is_last: bool


@dataclass(frozen=True)
class Round:
    """Some windows of every camera's film, from now on; the cameras' windows end in turn."""

    films: Sequence[Film]
    question: str
    window_s: float
    windows: range

    def slots(self, camera: int, began_s: float) -> Iterator[Slot]:
        """The frames of a camera; each is given when it is its time."""
        length_us = round(self.window_s * 1e6)
        began_s += camera * self.window_s / len(self.films)
        for window in self.windows:
            pictures = self.films[camera].windows[window]
            for number, picture in enumerate(pictures):
                time_us = window * length_us + number * length_us // len(pictures)
                due_s = began_s + time_us / 1e6 - self.windows.start * self.window_s
                time.sleep(max(0.0, due_s - time.monotonic()))
                yield Slot(window, time_us, picture, number == len(pictures) - 1)


@dataclass
class Answers:
    """What cameras were told."""

    texts: dict[WindowName, str] = field(default_factory=dict)
    waits_s: dict[WindowName, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    """Windows by their fate, as the server counts them."""
    faults: list[str] = field(default_factory=list)

    @property
    def waits(self) -> Waits:
        """How long the answers took."""
        return Waits(list(self.waits_s.values()))

    def add(self, other: "Answers") -> None:
        """Add those of another round."""
        self.texts |= other.texts
        self.waits_s |= other.waits_s
        self.counts += other.counts
        self.faults += other.faults


def over_sockets(server: Server, key: str, shown: Round) -> Answers:
    """Show a round to the server's live socket, a connection for each camera."""
    answers = Answers()
    with ThreadPoolExecutor(len(shown.films)) as threads:
        began_s = time.monotonic()
        cameras = [
            threads.submit(_over_socket, server, key, shown, number, began_s)
            for number in range(len(shown.films))
        ]
    for camera in cameras:
        answers.add(camera.result())
    return answers


def _over_socket(server: Server, key: str, shown: Round, camera: int, began_s: float) -> Answers:
    answers, sent_s = Answers(), dict[int, float]()
    try:
        with LiveClient(
            server.url,
            key=key,
            stream=f"camera {camera}",
            window_s=shown.window_s,
            question=shown.question,
            max_tokens=MAX_TOKENS,
        ) as live:

            def read() -> None:
                for answer in live:
                    read_s = time.monotonic()
                    window = round(answer.start_us / 1e6 / shown.window_s)
                    answers.texts[camera, window] = answer.text
                    answers.waits_s[camera, window] = read_s - sent_s[window]

            reader = threading.Thread(target=_noting(read, answers, f"camera {camera}"))
            reader.start()
            for slot in shown.slots(camera, began_s):
                if slot.is_last:
                    sent_s[slot.window] = time.monotonic()
                if not live.send(slot.picture, slot.time_us):
                    answers.faults.append(f"camera {camera}: a frame was not sent")
            live.end()
            reader.join()
            answers.counts.update(live.counts.get("windows", {}))
    except LiveError as error:
        answers.faults.append(f"camera {camera}: {error}")
        return answers
    counts = answers.counts
    if len(answers.texts) != counts["asked"]:
        answers.faults.append(f"camera {camera}: {len(answers.texts)} answers read of {counts}")
    num_windows = len(answers.texts) + sum(counts[fate] for fate in UNANSWERED)
    if num_windows != len(shown.windows):
        answers.faults.append(f"camera {camera}: {len(shown.windows)} windows shown, {counts}")
    return answers


def _noting(work: Callable[[], None], answers: Answers, who: str) -> Callable[[], None]:
    """The same work for a thread, where nobody sees an error."""

    def go() -> None:
        try:
            work()
        except Exception as error:
            answers.faults.append(f"{who}: {error!r}")

    return go


def over_http(server: Server, shown: Round) -> Answers:
    """Show a round to vLLM's own server: each window as a video, when its last frame is there."""
    answers = Answers()

    def watch(camera: int, began_s: float) -> None:
        # A window may end before the answer about the last one has come.
        with ThreadPoolExecutor(AT_ONCE) as asking_threads:
            pictures: list[str] = []
            for slot in shown.slots(camera, began_s):
                pictures.append(base64.b64encode(slot.picture).decode())
                if slot.is_last:
                    sent_s, window = time.monotonic(), slot.window
                    name, body = (camera, window), asking_body(pictures, shown.question)
                    asking_threads.submit(ask, name, body, sent_s)
                    pictures = []

    def ask(name: WindowName, body: dict[str, Any], sent_s: float) -> None:
        _noting(lambda: note(name, said(client, body), sent_s), answers, str(name))()

    def note(name: WindowName, text: str, sent_s: float) -> None:
        answers.waits_s[name] = time.monotonic() - sent_s
        answers.texts[name] = text

    with _client(server) as client, ThreadPoolExecutor(len(shown.films)) as threads:
        began_s = time.monotonic()
        cameras = [threads.submit(watch, number, began_s) for number in range(len(shown.films))]
    for camera in cameras:
        camera.result()
    return answers


def over_http_at_once(
    server: Server, films: Sequence[Film], question: str, names: Sequence[WindowName]
) -> dict[WindowName, str]:
    """What vLLM's own server says of these windows, several at a time and not timed."""

    def ask(name: WindowName) -> str:
        pictures = films[name[0]].windows[name[1]]
        encoded = [base64.b64encode(picture).decode() for picture in pictures]
        return said(client, asking_body(encoded, question))

    with _client(server) as client, ThreadPoolExecutor(AT_ONCE) as threads:
        return dict(zip(names, threads.map(ask, names), strict=True))


def asking_body(pictures: Sequence[str], question: str) -> dict[str, Any]:
    """A chat request about a window: its JPEGs, in base64, as one video."""
    return asking(
        "data:video/jpeg;base64," + ",".join(pictures),
        question,
        max_tokens=MAX_TOKENS,
    )


def said(client: httpx.Client, body: dict[str, Any]) -> str:
    """The answer of a chat request."""
    reply = client.post(CHAT, json=body).raise_for_status().json()
    return str(reply["choices"][0]["message"]["content"])


def _client(server: Server) -> httpx.Client:
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    return httpx.Client(base_url=server.url, timeout=PATIENCE_S, trust_env=False, limits=limits)
