"""The two houses: who sees what, and says it how."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headstart.lab.language.drafter_house import DrafterHouse
from headstart.lab.language.facts import Fact
from headstart.lab.language.questions import Question
from headstart.lab.language.sighting import Sighting, sight_in_events, sight_in_frames
from headstart.lab.language.speech import Line
from headstart.lab.language.target_house import TargetHouse
from headstart.lab.world.scene import Scene


class _Speaker(Protocol):
    def answer(self, question: Question) -> Line: ...


@dataclass(frozen=True)
class Answer:
    """What is said, and what of it can be checked."""

    text: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Style:
    """A house: an eye and a voice."""

    look: Callable[[Scene], Sighting]
    speak: Callable[[Sighting], _Speaker]

    def answer(self, scene: Scene, question: Question) -> Answer:
        """The reference answer about a scene: the same for the same visible state, always."""
        line = self.speak(self.look(scene)).answer(question)
        return Answer(line.text, tuple(dict.fromkeys(line.facts)))


TARGET_STYLE = Style(sight_in_frames, TargetHouse)
DRAFTER_STYLE = Style(sight_in_events, DrafterHouse)
