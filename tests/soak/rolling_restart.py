"""Servers restarted one after the other under live cameras: is a window lost, doubled or wrong?

    python -m tests.soak.rolling_restart --tiny --cameras 6 --windows 60 --window 2

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
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from headstart_lab.pair import find_pair
from headstart_lab.tiny import TinyVideoLlava
from rig.film import Film
from rig.live_load import over_http_at_once
from rig.live_rounds import NUM_FRAMES, QUESTION, note
from rig.moving_camera import PATIENCE_S, MovingCamera
from rig.servers import Server
from rig.serving import Workspace, add_arguments, keep


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


def first_ready(replicas: Sequence[Replica], number: int) -> str:
    """The address of a server that is ready, in an order of the camera's own."""
    num = len(replicas)
    order = [replicas[(number + place) % num] for place in range(num)]
    while True:
        for replica in order:
            if replica.is_ready:
                return replica.server.url
        time.sleep(0.1)


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
                MovingCamera(
                    f"camera {number}", film, options.window, partial(first_ready, replicas, number)
                )
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
        "doubled": sum(camera.num_doubled for camera in cameras),
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
