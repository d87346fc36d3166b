"""What is asked of every engine: streams of clips with questions, one after another or at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstart.errors import BenchError
from headstart.media.clip import Clip, ClipFiles

MAX_STREAMS = 16


@dataclass(frozen=True)
class Item:
    """One question about one clip."""

    clip: Clip | ClipFiles
    question: str


Camera = Callable[[int, int], Sequence[Item]]
"""The items of one stream in one round, in order; the same whenever it is called again."""


@dataclass(frozen=True)
class Workload:
    """Streams that ask at the same time, each waiting for its answer before it asks on."""

    name: str
    words: str
    camera: Camera
    max_tokens: int
    num_streams: int = 1
    schema: Mapping[str, Any] | None = None
    """A JSON schema that every answer follows, bare vLLM's as well."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_streams <= MAX_STREAMS:
            raise BenchError(f"{self.num_streams} streams at once: give 1 to {MAX_STREAMS}")


def rotating(clips: Sequence[Clip | ClipFiles], questions: Sequence[str]) -> list[Item]:
    """A question for each clip, the next one each time; with one question, the same one."""
    if not questions:
        raise BenchError("nothing to ask: give at least one question")
    return [Item(clip, questions[number % len(questions)]) for number, clip in enumerate(clips)]
