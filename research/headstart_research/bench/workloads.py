"""What is asked of every engine: streams of clips with questions, one stream or several at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any

from headstart.errors import BenchError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import Events
from headstart.media.video import Video
from headstart_research.bench.open_loop import Load

MAX_STREAMS = 16


@dataclass(frozen=True)
class Item:
    """One question about one clip."""

    clip: Clip | ClipFiles
    question: str

    def filmed(self, num_frames: int) -> tuple[Video, Events | None]:
        """So many frames of the clip, and its events, for a camera that shows them one by one."""
        clip = self.clip.read(num_frames) if isinstance(self.clip, ClipFiles) else self.clip
        if clip.video is None:
            raise BenchError("a live workload is about frames: give it clips with video")
        return clip.video.sample(num_frames), clip.events


Camera = Callable[[int, int], Sequence[Item]]
"""The items of a round and a stream, in order; the same at every call."""


@dataclass(frozen=True)
class Workload:
    """Streams that ask at the same time.

    In a closed loop each waits for an answer before it asks again. With ``loads`` it is an open
    loop: the streams' questions arrive by themselves, at each load in turn.
    """

    name: str
    words: str
    camera: Camera
    max_tokens: int
    num_streams: int = 1
    schema: Mapping[str, Any] | None = None
    """A JSON schema that every answer follows, bare vLLM's as well."""
    frame_s: float = 0.0
    """Live: the frames of a clip arrive so many seconds apart, and an answer's time counts from
    the last of them. 0 where each clip is there as a whole."""

    site: Callable[[int], Sequence[Item]] | None = None
    """What another camera of the same site was asked before a round. It is not measured: it is
    what a warm memory can quote."""
    loads: tuple[Load, ...] = ()
    """Of an open loop; without any, the loop is closed."""

    @property
    def is_live(self) -> bool:
        """Whether frames arrive one by one."""
        return self.frame_s > 0

    def __post_init__(self) -> None:
        if not 1 <= self.num_streams <= MAX_STREAMS:
            raise BenchError(f"{self.num_streams} streams at once: give 1 to {MAX_STREAMS}")
        if self.is_live and self.loads:
            raise BenchError(
                f"{self.name}: frames of a live camera come at its own pace; give it no loads"
            )

    def streams(self, number: int) -> list[Sequence[Item]]:
        return [self.camera(number, stream) for stream in range(self.num_streams)]

    def under(self, load: Load) -> "Workload":
        """What is played at one load, under a name of its own and about clips of its own.

        An engine whose memory knows no tenants would otherwise quote what it said at the load
        before.
        """
        place = self.loads.index(load)

        def camera(number: int, stream: int) -> Sequence[Item]:
            return self.camera(number * len(self.loads) + place, stream)

        name, words = f"{self.name} {load.name}", f"{self.words}; {load.words}"
        return replace(self, name=name, words=words, camera=camera, loads=())

    def unplayed(self, rounds: int) -> int:
        """The first number whose clips are played in none of so many rounds."""
        return rounds * max(1, len(self.loads))

    def played(self) -> list["Workload"]:
        """What stands in a result: itself, or one workload for each load."""
        return [self.under(load) for load in self.loads] or [self]


def rotating(clips: Sequence[Clip | ClipFiles], questions: Sequence[str]) -> list[Item]:
    """Ask about each clip the next of the questions, over and over."""
    if not questions:
        raise BenchError("nothing to ask: give at least one question")
    return [Item(clip, questions[number % len(questions)]) for number, clip in enumerate(clips)]


def closed_loops(workloads: Sequence[Workload]) -> list[Workload]:
    """Those that are played where none is named: the loads of an open loop take many minutes."""
    return [work for work in workloads if not work.loads]


def lab_workloads(answers: int, max_tokens: int) -> list[Workload]:
    """The workloads of the distribution headstart-lab, which registers them as an entry point."""
    for found in entry_points(group="headstart.workloads", name="lab"):
        workloads: list[Workload] = found.load()(answers, max_tokens)
        return workloads
    raise BenchError(
        "without --folder the bench asks about the lab's drives, and headstart-lab is not"
        " installed: pip install ./lab (in a checkout of headstart), or give --folder"
    )
