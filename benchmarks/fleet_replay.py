"""Cameras that ask several real servers about their windows, at times that are fixed beforehand."""

import base64
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
from benchmarks.film import Film
from benchmarks.live_load import asking_body
from tests.serve.servers import CHAT, Server

PATIENCE_S = 300.0


@dataclass(frozen=True)
class Told:
    """One answer of a server."""

    landed_s: float
    """When its window ended, from the beginning."""
    wait_s: float
    num_passes: int
    decode_s: float
    """From the first token to the last, by the server's own clock."""


@dataclass
class Replay:
    """What a load of windows was answered with."""

    told: list[Told] = field(default_factory=list)
    num_dropped: int = 0

    def add(self, other: "Replay") -> None:
        """Add what another camera was told."""
        self.told += other.told
        self.num_dropped += other.num_dropped


@dataclass(frozen=True)
class FilmedCamera:
    """A camera: its film, the server that it belongs to, and when its windows end."""

    name: str
    film: Film
    server: Server
    first_s: float
    every_s: float

    def ask(self, client: httpx.Client, window: int, question: str, landed_s: float) -> Told:
        """Ask about one window, from the moment at which it is due."""
        pictures = [base64.b64encode(picture).decode() for picture in self.film.windows[window]]
        body = asking_body(pictures, question)
        body["headstart"] = {"stream": self.name, "timeline": True}
        begun_s = time.monotonic()
        reply = client.post(CHAT, json=body).raise_for_status().json()["headstart"]
        decode_ms = sum(
            span["end_ms"] - span["start_ms"]
            for span in reply["timeline"]["target"]
            if span["stage"] == "decode"
        )
        return Told(landed_s, time.monotonic() - begun_s, reply["passes"], decode_ms / 1e3)

    def play(self, question: str, windows: range, begun_s: float) -> Replay:
        """Ask about each window when it ends; of those that end meanwhile only the newest."""
        replay = Replay()
        with httpx.Client(base_url=self.server.url, timeout=PATIENCE_S, trust_env=False) as client:
            window = windows.start
            while window < windows.stop:
                due_s = self.first_s + (window - windows.start) * self.every_s
                time.sleep(max(0.0, begun_s + due_s - time.monotonic()))
                late_s = time.monotonic() - begun_s - due_s
                told = self.ask(client, window, question, due_s)
                replay.told.append(
                    Told(due_s, told.wait_s + late_s, told.num_passes, told.decode_s)
                )
                now_s = time.monotonic() - begun_s
                newest = windows.start + int((now_s - self.first_s) / self.every_s)
                next_window = max(window + 1, min(newest, windows.stop - 1))
                replay.num_dropped += next_window - window - 1
                window = next_window
        return replay


def play(cameras: Sequence[FilmedCamera], question: str, windows: range) -> Replay:
    """All cameras at the same time, each in a thread of its own."""
    replay = Replay()
    with ThreadPoolExecutor(len(cameras)) as threads:
        begun_s = time.monotonic()
        for each in threads.map(lambda camera: camera.play(question, windows, begun_s), cameras):
            replay.add(each)
    return replay
