"""Cameras on several servers behind a router, while one server is killed and another one drained.

    apt-get install haproxy && python -m tests.soak.fleet --seconds 600

Every stream has an owner of its own. It asks two questions about a window each few seconds, through
the router, and asks again until it has an answer: a question is answered once, or lost. Beside
them live cameras send frames over WebSockets, through the same router, and show a window again that
has no answer when their server ends. A third into the run a server is killed, and started again at
once; at two thirds another one is drained. The servers share a store of memories, unless --no-store
is given. Before all that, streams' memories are handed from one server to another over HTTP.

Prints a table, then one line of JSON, which is also kept in benchmarks/results. Fails if something
is lost, doubled or wrong.
"""

import argparse
import base64
import contextlib
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from rig.film import Film
from rig.live_load import asking_body, said
from rig.live_rounds import NUM_FRAMES, QUESTION, note, show
from rig.moving_camera import MovingCamera
from rig.redis_server import running_redis
from rig.servers import asking
from rig.serving import QUESTIONS, Clip, add_arguments, keep, workspace
from tests.soak.fleet_hand_over import hand_over
from tests.soak.fleet_servers import HAPROXY, Fleet
from tests.soak.fleet_streams import LATEST_S, MAX_TOKENS, Stream, Subject, figures

PHASES = ("before", "after the kill", "after the drain")
CHECK = "check"
"""The tenant that asks without a stream: nothing is remembered of it, and nothing drafted."""
FAULTS = ("lost", "doubled", "wrong")
NUM_CLIPS = 24
AT_ONCE = 6


def expected(fleet: Fleet, clips: Sequence[Clip]) -> dict[Subject, str]:
    """What the target alone says of each clip to each question."""
    clients = [server.client(CHECK) for server in fleet.servers]
    asked = [(clip, question) for clip in clips for question in QUESTIONS]

    def ask(number: int) -> str:
        clip, question = asked[number]
        body = asking(clip.video_url, question, max_tokens=MAX_TOKENS)
        return said(clients[number % len(clients)], body)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        texts = threads.map(ask, range(len(asked)))
        return {(clip.name, ask): text for (clip, ask), text in zip(asked, texts, strict=True)}


def streams_of(
    fleet: Fleet, clips: Sequence[Clip], texts: Mapping[Subject, str], options: argparse.Namespace
) -> list[Stream]:
    """All streams: they begin one after the other, each with another clip and other questions."""
    every_s, num = options.every, options.streams
    found = []
    for number in range(num):
        start = number % len(clips)
        questions = [QUESTIONS[(number + place) % len(QUESTIONS)] for place in range(2)]
        found.append(
            Stream(
                f"camera-{number}",
                fleet.router,
                [*clips[start:], *clips[:start]],
                questions,
                texts,
                first_s=every_s * number / num,
                every_s=every_s,
            )
        )
    return found


def live_cameras(fleet: Fleet, options: argparse.Namespace) -> list[MovingCamera]:
    """Live cameras at the same router."""
    num_windows = int(options.seconds / options.window)
    return [
        MovingCamera(
            f"live-{number}",
            Film.of_drive(number, num_windows, NUM_FRAMES),
            options.window,
            lambda: fleet.router,
            key=f"live-{number}",
        )
        for number in range(options.live)
    ]


def run(fleet: Fleet, clips: Sequence[Clip], options: argparse.Namespace) -> dict[str, Any]:
    """Ask, kill, drain; what became of all questions and windows."""
    streams = streams_of(fleet, clips, expected(fleet, clips), options)
    cameras = live_cameras(fleet, options)
    with ThreadPoolExecutor(max(1, len(cameras))) as threads:
        shown = [threads.submit(camera.run, time.monotonic()) for camera in cameras]
        began_s = {}
        for phase in PHASES:
            note(phase)
            began_s[phase] = time.monotonic()
            if phase == PHASES[0]:
                for stream in streams:
                    stream.start()
            elif phase == PHASES[1]:
                fleet.kill(0)
            elif phase == PHASES[2]:
                fleet.drain(1)
            time.sleep(options.seconds / len(PHASES))
        for stream in streams:
            stream.stopping.set()
        for stream in streams:
            stream.join(2 * LATEST_S)
        for each in shown:
            each.result()
    asked = [each for stream in streams for each in stream.asked]
    ends_s = [*list(began_s.values())[1:], math.inf]
    return {
        "phases": {
            phase: figures([each for each in asked if start_s <= each.asked_s < stop_s])
            for (phase, start_s), stop_s in zip(began_s.items(), ends_s, strict=True)
        },
        "live": live_figures(fleet, cameras),
    }


def live_figures(fleet: Fleet, cameras: Sequence[MovingCamera]) -> dict[str, Any]:
    """Of the live cameras: every window is asked about again over HTTP, with the same frames."""
    client = fleet.servers[0].client(CHECK)

    def says(pictures: Sequence[bytes]) -> str:
        return said(
            client, asking_body([base64.b64encode(one).decode() for one in pictures], QUESTION)
        )

    num_windows = sum(len(camera.film.windows) for camera in cameras)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        texts = [list(threads.map(says, camera.film.windows)) for camera in cameras]
    return {
        "cameras": len(cameras),
        "windows": num_windows,
        "lost": num_windows - sum(len(camera.answers) for camera in cameras),
        "doubled": sum(camera.num_doubled for camera in cameras),
        "wrong": sum(
            text != said_of[window]
            for camera, said_of in zip(cameras, texts, strict=True)
            for window, text in camera.answers.items()
        ),
        "moves": sum(camera.num_moves for camera in cameras),
        "longest_gap_s": round(max((camera.longest_gap_s for camera in cameras), default=0.0), 2),
    }


@contextlib.contextmanager
def store_of(options: argparse.Namespace) -> Iterator[str | None]:
    """A Redis of this run's own."""
    if options.no_store:
        yield None
        return
    with running_redis() as address:
        yield address


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--streams", type=int, default=48)
    parser.add_argument("--every", type=float, default=40.0, help="seconds between windows")
    parser.add_argument("--live", type=int, default=4, help="live cameras beside the streams")
    parser.add_argument("--window", type=float, default=20.0, help="seconds, of a live camera")
    parser.add_argument("--travellers", type=int, default=48, help="streams to hand over")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--policy", choices=("stream", "round-robin"), default="stream")
    parser.add_argument("--no-store", action="store_true")
    options = parser.parse_args()
    if HAPROXY is None:
        sys.exit("HAProxy is not installed: apt-get install haproxy")
    tenants = [CHECK, "travelling"]
    tenants += [f"camera-{number}" for number in range(options.streams)]
    tenants += [f"live-{number}" for number in range(options.live)]
    with workspace(options, NUM_CLIPS) as made, store_of(options) as store:
        here = replace(made, drafter=None)
        fleet = Fleet(here, options.servers, tenants, store, options.policy)
        try:
            fleet.wait_ready()
            note("all servers are ready")
            handed = hand_over(
                fleet.servers[0], fleet.servers[-1], made.listed(), options.travellers
            )
            note(f"handed over: {handed}")
            told = run(fleet, made.listed(), options)
        finally:
            fleet.close()
    rows = told["phases"]
    show(("", *PHASES), [(name, *(rows[p][name] for p in PHASES)) for name in rows[PHASES[0]]])
    name = f"fleet_{options.policy}{'_no-store' if options.no_store else ''}"
    keep("fleet", options, {**told, "hand_over": handed}, name)
    counted = [told["live"], *rows.values()]
    faults = [f"{each[name]} {name}" for each in counted for name in FAULTS if each.get(name)]
    if faults:
        sys.exit(f"questions or windows: {', '.join(faults)}")


if __name__ == "__main__":
    main()
