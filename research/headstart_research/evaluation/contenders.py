"""The drafters that are measured beside each other.

Every stream gets a drafter of its own, as it is after a start: so no held-out stream helps another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headstart.drafters.memory import Memory
from headstart.drafters.registry import registration
from headstart.errors import EvaluationError
from headstart.speculation.drafter import Drafter, SeeingDrafter
from headstart_research.bridge.config import read_config
from headstart_research.bridge.drafter import BridgeDrafter
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.evaluation.known_answers import KnownAnswers
from headstart_research.evaluation.shown import SELECTIONS, Shown
from headstart_research.evaluation.taught import Taught
from headstart_research.evaluation.workload import Stream

MEMORY, WARM = "memory", "warm-memory"

Load = Callable[[Path, Memory], SeeingDrafter]
"""Reads a bridge, a learned drafter, from its directory, and gives it a memory to copy from."""


@dataclass(frozen=True)
class Contender:
    """A drafter of the table."""

    name: str
    words: str
    build: Callable[[Stream], Drafter]
    """A new one for a stream."""


@dataclass(frozen=True)
class Bridge:
    """A learned drafter in a directory, which is a contender with each selection of features."""

    directory: Path
    load: Load
    known: KnownAnswers
    """To its memory, from the start."""
    label: str = ""
    """Tells it from other bridges; empty where there is only one."""

    def name(self, selection: str) -> str:
        """In the table, where it is shown this selection of the features."""
        return " ".join(filter(None, (f"bridge-{selection}", self.label)))

    def contenders(self, features: Sequence[str]) -> list[Contender]:
        """One for each selection of features that the records have."""
        return [
            Contender(
                self.name(selection),
                f"the bridge in {self.directory.name}, shown {', '.join(names) or 'no features'}",
                partial(self._build, names),
            )
            for selection, names in SELECTIONS.items()
            if set(names) <= set(features)
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """Whose difference says what features are worth, and what the bridge adds to memory."""
        name = self.name
        return [
            (name("target"), name("none")),
            (name("events"), name("none")),
            (name("both"), name("target")),
            *((name(selection), WARM) for selection in SELECTIONS),
        ]

    def _build(self, names: Sequence[str], stream: Stream) -> Drafter:
        return Shown(self.load(self.directory, self.known.memory()), names, stream)


def bridges(
    directories: Sequence[Path], load: Load, known: KnownAnswers, target: Checkpoint
) -> list[Bridge]:
    """One a directory; several are told apart by their directories' names.

    Refused where one was trained for another target than the one whose answers are replayed.
    """
    names = [directory.resolve().name for directory in directories]
    if len(set(names)) < len(names):
        raise EvaluationError(
            "two bridges lie in directories of the same name, by which the table tells them"
            " apart: rename one"
        )
    for directory in directories:
        _, verifier = read_config(directory)
        if verifier.digest != target.digest:
            raise EvaluationError(
                f"{directory} was trained for another target ({verifier.name}) than the records"
                f" are of ({target.name}): name a bridge that headstart train bridge trained on"
                " records of this target, or collect records of the bridge's"
            )
    if len(directories) == 1:
        return [Bridge(directories[0], load, known)]
    return [
        Bridge(where, load, known, name) for where, name in zip(directories, names, strict=True)
    ]


def memories(known: KnownAnswers) -> list[Contender]:
    """Memory of the stream alone; and, where answers of other streams are known, warm with them."""
    nothing = KnownAnswers()
    own = Contender(MEMORY, "memory of the stream's own answers", lambda stream: nothing.memory())
    if not known.records:
        return [own]
    words = f"memory that was given {len(known.records)} answers of other streams before"
    return [own, Contender(WARM, words, lambda stream: known.memory())]


def registered(names: Sequence[str], known: KnownAnswers) -> list[Contender]:
    """Further drafters by the names of the registry, or by where their classes are found."""
    found = []
    for name in names:
        if name == MEMORY:
            raise EvaluationError("memory is measured anyway: leave --also memory out")
        words = registration(name).drafts_from
        found.append(Contender(name, words, partial(_taught, Taught(name, known))))
    return found


def _taught(taught: Taught, stream: Stream) -> Drafter:
    return taught.drafter()


def load_bridge(directory: Path, memory: Memory) -> SeeingDrafter:
    """Read what `headstart train bridge` wrote."""
    return BridgeDrafter.load(directory, memory)
