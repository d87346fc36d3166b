"""Where clips to ask about come from: a folder of recordings, or the lab's drives."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from headstart.errors import CollectError
from headstart.media.events import SensorSize
from headstart_research.bench.clip_folder import folder_streams
from headstart_research.bench.clip_stream import ClipStream
from headstart_research.collect.shard import Shard

LAB, HELD_OUT = "lab", "lab, held out"
"""Names of sources: the lab's drives, and those of them that are for measuring only."""
ENTRY_POINTS = "headstart.streams"
"""The group under which a package registers a function that gives streams and questions.

It is called with the number of streams, and with ``held_out``: whether they are to be such that
nothing is ever trained on.
"""


@dataclass(frozen=True)
class ClipSource:
    """Streams of clips, and what is asked about every clip of them."""

    name: str
    """As the manifest states it: the same folder may lie elsewhere on another machine."""
    streams: Sequence[ClipStream]
    questions: tuple[str, ...]
    clips_a_stream: int | None = None
    """Of each stream only the first so many."""

    def __post_init__(self) -> None:
        if not self.questions:
            raise CollectError("nothing to ask: give at least one --question")
        if len(set(self.questions)) < len(self.questions):
            raise CollectError("a question is there twice: give each --question once")

    def mine(self, shard: Shard) -> "list[tuple[ClipStream, int]]":
        """The streams of a shard, each with the number of its clips."""
        found = []
        for stream in self.streams:
            if shard.holds(stream.name):
                count = stream.count()
                limit = self.clips_a_stream
                found.append((stream, count if limit is None else min(count, limit)))
        return found


def folder_source(
    folder: Path,
    questions: Sequence[str],
    clips_a_stream: int | None,
    sensor: SensorSize | None = None,
) -> ClipSource:
    """The recordings of a folder, as `headstart_research.bench.clip_folder` reads them."""
    streams = folder_streams(folder, sensor)
    return ClipSource(f"folder {folder.name}", streams, tuple(questions), clips_a_stream)


def lab_source(
    num_drives: int,
    clips_a_stream: int,
    questions: Sequence[str] = (),
    *,
    held_out: bool = False,
) -> ClipSource:
    """Drives of the distribution headstart-lab, which registers them as an entry point."""
    for found in entry_points(group=ENTRY_POINTS, name="lab"):
        streams, usual = found.load()(num_drives, held_out=held_out)
        name = HELD_OUT if held_out else LAB
        return ClipSource(name, streams, tuple(questions or usual), clips_a_stream)
    raise CollectError(
        "without --folder and --log the lab's drives are collected, and headstart-lab is not"
        " installed: pip install ./lab (in a checkout of headstart), or give --folder"
    )
