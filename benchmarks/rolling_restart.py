"""Servers restarted one after the other under live cameras: is a window lost, doubled or wrong?

    python -m benchmarks.rolling_restart --tiny --cameras 6 --windows 60 --window 2

Two `headstart serve` processes answer live cameras. One is told to end (SIGTERM), drains, and is
started again on its port; when it is ready, the other one. A camera whose server drains gets the
answers under way and `ended`. Its program then connects to the other server and sends again the
frames of the windows that have no answer: it keeps the frames of a window until then.

At the end one server is asked over HTTP about every window, with the same frames. Prints a line of
JSON, and fails if a window has no answer, two answers, or another one than over HTTP.
"""

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from benchmarks.film import Film
from benchmarks.live_load import MAX_TOKENS, over_http_at_once
from benchmarks.live_rounds import NUM_FRAMES, QUESTION, note
from benchmarks.serving import Workspace, add_arguments, keep
from headstart_lab.pair import find_pair
from headstart_lab.tiny import TinyVideoLlava
from tests.serve.servers import Server

from headstart.client.live_client import LiveClient
from headstart.errors import LiveError

PATIENCE_S = 120.0


@dataclass
class Replica:
    """A server that can be restarted."""

    workspace: Workspace
    server: Server

    @property
    def is_ready(self) -> bool:
        """As a router sees it."""
        try:
            return httpx.get(f"{self.server.url}/ready", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def restart(self) -> float:
        """Drain, start again on the same port; returns how long draining took, in seconds."""
        begun_s = time.monotonic()
        self.server.process.send_signal(signal.SIGTERM)
        code = self.server.process.wait(PATIENCE_S)
        drained_s = time.monotonic() - begun_s
        if code:
            raise RuntimeError(f"a server that was told to end ended with {code}")
        port = self.server.port
        self.server = self.workspace.start_ours(server={"port": port})
        self.server.port = port
        self.server.wait_ready("/ready")
        return drained_s


@dataclass
class MovingCamera:
    """A camera program that goes to another server when its own is stopped."""

    number: int
    film: Film
    window_s: float
    replicas: Sequence[Replica]
    answers: dict[int, str] = field(default_factory=dict)
    num_answers: Counter[int] = field(default_factory=Counter)
    num_moves: int = 0
    longest_gap_s: float = 0.0
    """From the end of one connection to the first answer over the next."""

    def run(self, begun_s: float) -> None:
        """Show the whole film; returns when every window has an answer, or nobody gives one."""
        deadline_s = time.monotonic() + PATIENCE_S + len(self.film.windows) * self.window_s
        while len(self.answers) < len(self.film.windows) and time.monotonic() < deadline_s:
            try:
                self._show(self._server(), begun_s)
                self.num_moves += len(self.answers) < len(self.film.windows)
            except (LiveError, OSError):
                time.sleep(0.2)

    def _server(self) -> Server:
        """The first that is ready, of an order of the camera's own."""
        num = len(self.replicas)
        order = [self.replicas[(self.number + place) % num] for place in range(num)]
        while True:
            for replica in order:
                if replica.is_ready:
                    return replica.server
            time.sleep(0.1)

    def _show(self, server: Server, begun_s: float) -> None:
        first = min(set(range(len(self.film.windows))) - self.answers.keys())
        connected_s = time.monotonic()
        with LiveClient(
            server.url,
            stream=f"camera {self.number}",
            window_s=self.window_s,
            question=QUESTION,
            max_tokens=MAX_TOKENS,
        ) as live:
            ended = threading.Event()

            def read() -> None:
                try:
                    for answer in live:
                        window = first + round(answer.start_us / 1e6 / self.window_s)
                        if self.num_moves and answer.number == 1:
                            gap_s = time.monotonic() - connected_s
                            self.longest_gap_s = max(self.longest_gap_s, gap_s)
                        self.answers[window] = answer.text
                        self.num_answers[window] += 1
                except LiveError:
                    pass  # It is told to go: what has no answer is shown again.
                finally:
                    ended.set()

            reader = threading.Thread(target=read)
            reader.start()
            for window in range(first, len(self.film.windows)):
                if not self._send(live, window, first, begun_s, ended):
                    break
            else:
                live.end()
            reader.join()

    def _send(
        self, live: LiveClient, window: int, first: int, begun_s: float, ended: threading.Event
    ) -> bool:
        """The frames of a window at their times, or at once where those are over."""
        pictures = self.film.windows[window]
        for slot, picture in enumerate(pictures):
            share = slot / len(pictures)
            due_s = begun_s + (window + share) * self.window_s
            if ended.wait(max(0.0, due_s - time.monotonic())):
                return False
            time_us = round((window - first + share) * self.window_s * 1e6)
            if not live.send(picture, time_us):
                return False
        return True


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--cameras", type=int, default=6)
    parser.add_argument("--windows", type=int, default=60, help="of each camera")
    parser.add_argument("--window", type=float, default=2.0, help="seconds")
    options = parser.parse_args()
    films = [
        Film.of_drive(number, options.windows, NUM_FRAMES) for number in range(options.cameras)
    ]
    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made:
        if options.tiny:
            target = Path(made) / "target"
            TinyVideoLlava().save(target)
        else:
            target = options.target or find_pair().target
        replicas = []
        for number in range(2):
            home = Path(made) / f"server-{number}"
            home.mkdir()
            here = Workspace(home, target.absolute(), None, home, options.dtype)
            replicas.append(Replica(here, here.start_ours()))
        try:
            for replica in replicas:
                replica.server.wait_ready("/ready")
            note("both servers are ready")
            cameras = [
                MovingCamera(number, film, options.window, replicas)
                for number, film in enumerate(films)
            ]
            drained_s = []
            with ThreadPoolExecutor(len(cameras)) as threads:
                begun_s = time.monotonic()
                shown = [threads.submit(camera.run, begun_s) for camera in cameras]
                for replica in replicas:
                    time.sleep(5 * options.window)
                    drained_s.append(replica.restart())
                    note(f"drained in {drained_s[-1]:.2f} s and ready again")
                seconds = time.monotonic() - begun_s
                for each in shown:
                    each.result()
            names = [(c, w) for c in range(len(films)) for w in range(options.windows)]
            said = over_http_at_once(replicas[0].server, films, QUESTION, names)
        finally:
            for replica in replicas:
                replica.server.stop()
    figures = {
        "cameras": len(cameras),
        "window_s": options.window,
        "restarts": len(replicas),
        "restarts_took_s": round(seconds, 1),
        "drained_s": [round(each, 2) for each in drained_s],
        "windows": len(names),
        "lost": sum(w not in cameras[c].answers for c, w in names),
        "doubled": sum(number > 1 for camera in cameras for number in camera.num_answers.values()),
        "wrong": sum(cameras[c].answers.get(w, said[c, w]) != said[c, w] for c, w in names),
        "moves": sum(camera.num_moves for camera in cameras),
        "longest_gap_s": round(max(camera.longest_gap_s for camera in cameras), 2),
    }
    keep("rolling_restart", options, figures)
    broken = [name for name in ("lost", "doubled", "wrong") if figures[name]]
    if broken or seconds > options.windows * options.window:
        sys.exit(f"windows were {', '.join(broken) or 'shown before the restarts were over'}")


if __name__ == "__main__":
    main()
