"""Faults of a server under load: of its drafter, and of clients."""

import contextlib
import itertools
import json
import random
import signal
import socket
import threading
import time

import httpx
import psutil
import zmq

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import DraftChannel, receive, send
from headstart.speculation.draft import Draft
from rig.servers import asking
from rig.serving import Clip, Server

CHAT = "/v1/chat/completions"
DRAFTER = "headstart_events.beside.process"
LYING_S = 6.0  # less than the next drafter takes to start


class Faults:
    """Causes one fault after the other, in a cycle."""

    def __init__(self, server: Server, clip: Clip) -> None:
        self._server = server
        self._clip = clip
        self._kinds = itertools.cycle(
            [
                self.drafter_killed,
                self.drafter_stopped,
                self.drafter_lying,
                self.clients_leaving,
                self.half_open,
            ]
        )
        self.num_lies = 0

    def __call__(self, number: int) -> str:
        """Cause the next fault; returns its name."""
        kind = next(self._kinds)
        with contextlib.suppress(psutil.Error, OSError, httpx.HTTPError):
            kind()
        return kind.__name__

    def _drafter(self) -> psutil.Process | None:
        for child in self._server.children():
            with contextlib.suppress(psutil.Error):
                if DRAFTER in child.cmdline():
                    return child
        return None

    def drafter_killed(self) -> None:
        """Kill the drafter; the server starts it again."""
        if drafter := self._drafter():
            drafter.kill()

    def drafter_stopped(self) -> None:
        """Stop the drafter for three seconds."""
        if drafter := self._drafter():
            drafter.send_signal(signal.SIGSTOP)
            threading.Timer(3.0, drafter.send_signal, [signal.SIGCONT]).start()

    def drafter_lying(self) -> None:
        """Replace the drafter by this process, which sends random drafts."""
        if (drafter := self._drafter()) is None:
            return
        spec = next(word for word in drafter.cmdline() if word.startswith("{"))
        channel = DraftChannel(json.loads(spec)["channel"])
        drafter.kill()
        drafter.wait(10)
        asks, drafts, previews = channel.asks_in(), channel.drafts_out(), channel.previews_out()
        try:
            self._server.wait_until(lambda: self._drafter() is not None, "the next drafter", 30)
            if successor := self._drafter():
                send(previews, messages.Ready(successor.pid))
            until_s = time.monotonic() + LYING_S
            while time.monotonic() < until_s:
                data = receive(asks, 0.1)
                asked = messages.read_by_draft_model(data) if data is not None else None
                if isinstance(asked, messages.Ask):
                    self._lie(asked.request, drafts)
        finally:
            for socket_of_ours in (asks, drafts, previews):
                socket_of_ours.close()

    def _lie(self, request: str, drafts: "zmq.Socket[bytes]") -> None:
        for start in (0, 0, 7, 10**6):
            tokens = tuple(random.randrange(-9, 40_000) for _ in range(64))
            draft = Draft(tokens, "eventgpt", time.monotonic(), start)
            self.num_lies += send(drafts, messages.Drafted(request, draft))
        with contextlib.suppress(zmq.Again):
            drafts.send(random.randbytes(99), zmq.NOBLOCK)

    def clients_leaving(self) -> None:
        """Eight clients disconnect in the middle of their streams."""
        body = asking(self._clip.video_url, "Who left?", max_tokens=200, stream=True)
        for _ in range(8):
            with (
                httpx.Client(base_url=self._server.url, timeout=60, trust_env=False) as client,
                client.stream("POST", CHAT, json=body) as reply,
            ):
                next(reply.iter_bytes(), b"")

    def half_open(self) -> None:
        """Open a thousand connections that send nothing more, for ten seconds."""
        opened = []
        for _ in range(1000):
            opened.append(socket.create_connection(("127.0.0.1", self._server.port), 10))
            opened[-1].sendall(b"POST /v1/chat")
        threading.Timer(10.0, lambda: [one.close() for one in opened]).start()
