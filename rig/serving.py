"""The servers and clips that the programs share which load, fuzz or end servers."""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import numpy as np

from headstart.media.events import SensorSize
from headstart.media.video import Video
from headstart.models.video_llava.view import CHAT_TEMPLATE
from headstart_events.simulation import simulate
from headstart_events.writers.writing import write_recording
from headstart_lab.answering import held_out_drive
from headstart_lab.language.questions import Question
from headstart_lab.pair import find_pair
from headstart_lab.seconds import write_second
from headstart_lab.street import street_video
from headstart_lab.tiny import TinyEventGpt, TinyVideoLlava
from headstart_server.server import flags
from rig.measurement import RESULTS, Measurement
from rig.servers import (
    MODEL,
    Server,
    data_url,
    free_port,
    running,
    serve_command,
    start,
    toml,
)

ENGINE: dict[str, Any] = {
    "served_model_name": MODEL,
    "enforce_eager": True,
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 30,
}
QUESTIONS = tuple(
    question.usual
    for question in (Question.DESCRIBE, Question.VEHICLES, Question.SAFE, Question.WEATHER)
)


@dataclass(frozen=True)
class Clip:
    """A video, and where its events are, if it has any."""

    name: str
    video_url: str
    events: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add options for models and clips; by default the lab pair and seconds of a held-out drive."""
    parser.add_argument("--target", type=Path)
    parser.add_argument("--drafter", type=Path)
    parser.add_argument("--tiny", action="store_true", help="untrained models, and a drawn street")
    parser.add_argument("--clips", type=Path, help="*.mp4, with events *.npz of the same name")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--output", type=Path, default=RESULTS)


def keep(
    name: str, arguments: argparse.Namespace, figures: dict[str, Any], kept_as: str | None = None
) -> None:
    """Write a program's figures to the results, and print them as one line of JSON."""
    pair = "untrained" if arguments.tiny else str(arguments.target or "lab pair")
    program = sys.modules["__main__"].__spec__
    assert program is not None, "a program that keeps figures is started by python -m"
    command = ["python", "-m", program.name, *sys.argv[1:]]
    measurement = Measurement(kept_as or name, command, {"pair": pair, **figures})
    measurement.write(arguments.output)
    print(measurement.line())


@dataclass(frozen=True)
class Workspace:
    """The models and clips of a run, in a directory that is deleted afterwards."""

    home: Path
    target: Path
    drafter: Path | None
    clips: Path
    dtype: str

    def listed(self) -> list[Clip]:
        """The clips, with their data URLs."""
        found = []
        for path in sorted(self.clips.glob("*.mp4")):
            events = path.with_suffix(".npz")
            found.append(Clip(path.stem, data_url(path), events if events.exists() else None))
        return found

    def start_plain(self, **vllm: Any) -> Server:
        """vLLM's own server with its defaults and these arguments, on the same target."""
        port = free_port()
        arguments = {
            "model": str(self.target),
            "host": "127.0.0.1",
            "port": port,
            "chat_template": CHAT_TEMPLATE,
            "media_io_kwargs": {"video": {"num_frames": 8}},
            "disable_uvicorn_access_log": True,
            **ENGINE,
            "dtype": self.dtype,
            **vllm,
        }
        program = ["-m", "vllm.entrypoints.openai.api_server"]
        return start([*program, *flags(arguments)], port, self.home / "plain.log")

    def start_ours(self, **tables: dict[str, Any]) -> Server:
        """`headstart serve` with these further settings; open if they name no tenants."""
        port = free_port()
        is_open = "tenants" not in tables
        server: dict[str, Any] = {"target": self.target, "port": port, "open": is_open}
        if self.drafter is not None:
            server["drafter"] = self.drafter
        vllm = {**ENGINE, "dtype": self.dtype, "enable_prompt_tokens_details": True}
        given = {
            "server": {**server, **tables.pop("server", {})},
            "media": {"root": self.clips},
            "vllm": {**vllm, **tables.pop("vllm", {})},
            "drafter_vllm": {
                "enforce_eager": True,
                "dtype": self.dtype,
                "kv_cache_memory_bytes": 1 << 29,
            },
            **tables,
        }
        config = self.home / "headstart.toml"
        config.write_text(toml(given))
        return start(serve_command("--config", str(config)), port, self.home / "ours.log")


@contextlib.contextmanager
def workspace(arguments: argparse.Namespace, num_clips: int = 8) -> Iterator[Workspace]:
    """Make the models and clips that were not given."""
    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made:
        home = Path(made)
        target, drafter, clips = arguments.target, arguments.drafter, arguments.clips
        if arguments.tiny:
            target, drafter = home / "target", home / "drafter"
            TinyVideoLlava().save(target)
            TinyEventGpt().save(drafter)
        elif target is None:
            pair = find_pair()
            target, drafter = pair.target, pair.drafter
        if clips is None:
            clips = home / "clips"
            clips.mkdir()
            drive = [] if arguments.tiny else held_out_drive(num_clips)
            for number in range(num_clips):
                path = clips / f"second-{number}.mp4"
                if arguments.tiny:
                    write_clip(path, seed=number)
                else:
                    write_second(path, drive[number])
        yield Workspace(home, target, drafter, clips, arguments.dtype)


def write_clip(path: Path, seed: int) -> None:
    """Write a street in the seed's colour, with its events."""
    street = street_video(num_frames=16, width=96, height=64)
    tint = np.random.default_rng(seed).integers(0, 90, 3, dtype=np.uint8)
    frames = np.maximum(street.frames, tint) - tint
    Video(frames, street.times_us).write(path)
    seen = zip(street.times_us.tolist(), frames, strict=True)
    write_recording(path.with_suffix(".npz"), simulate(seen), SensorSize(96, 64))


__all__ = [
    "QUESTIONS",
    "Clip",
    "Server",
    "Workspace",
    "add_arguments",
    "keep",
    "running",
    "workspace",
]
