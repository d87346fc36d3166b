"""The two styles of reference answers: the target's and the drafter's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headstart_lab.language.drafter_speaker import DrafterSpeaker
from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.sighting import Sighting, sight_in_events, sight_in_frames
from headstart_lab.language.speech import Line
from headstart_lab.language.target_speaker import TargetSpeaker
from headstart_lab.world.scene import Scene


class _Speaker(Protocol):
    def answer(self, question: Question) -> Line: ...


@dataclass(frozen=True)
class Answer:
    """The text of an answer, and the facts it states."""

    text: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Style:
    """How one model answers: what its camera sees, and how it words that."""

    look: Callable[[Scene], Sighting]
    speak: Callable[[Sighting], _Speaker]

    def answer(self, scene: Scene, question: Question) -> Answer:
        """The reference answer about a scene: the same for the same visible state, always."""
        line = self.speak(self.look(scene)).answer(question)
        return Answer(line.text, tuple(dict.fromkeys(line.facts)))


TARGET_STYLE = Style(sight_in_frames, TargetSpeaker)
DRAFTER_STYLE = Style(sight_in_events, DrafterSpeaker)
