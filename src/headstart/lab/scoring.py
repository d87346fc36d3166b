"""How many facts an answer gets right, wrong, or leaves unsaid; and one who never looks.

Each model is held to the facts of its own house: what its camera can tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headstart.lab.language.facts import Fact, Finding, find, score
from headstart.lab.language.phrases import ROLES
from headstart.lab.language.questions import Question
from headstart.lab.language.styles import Answer, Style
from headstart.lab.split import Split
from headstart.lab.world.drive import Drive, last_frame_us


@dataclass(frozen=True)
class Reference:
    """What a house says to a kind of question."""

    question: Question
    answer: Answer


@dataclass(frozen=True)
class Tally:
    """Facts by what was said of them."""

    right: int
    wrong: int
    absent: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.right + self.wrong + self.absent

    @classmethod
    def of(cls, text: str, facts: Sequence[Fact]) -> Tally:
        """What a text says of facts."""
        found = Counter(find(text, fact) for fact in facts)
        return cls(found[Finding.RIGHT], found[Finding.WRONG], found[Finding.ABSENT])

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.right + other.right, self.wrong + other.wrong, self.absent + other.absent)


@dataclass(frozen=True)
class Scores:
    """Mean shares over questions, and all facts by what they are about.

    ``facts`` is the mean over questions of the share of a question's facts that are right;
    ``exact`` the share of answers that are the reference word for word.
    """

    num_questions: int
    facts: float
    exact: float
    of_question: dict[str, float]
    of_attribute: dict[str, Tally]


def judge(texts: Sequence[str], references: Sequence[Reference]) -> Scores:
    """Score each text against the reference at its place."""
    of_question: dict[str, list[float]] = defaultdict(list)
    of_attribute: dict[str, Tally] = defaultdict(lambda: Tally(0, 0, 0))
    exact = 0
    for text, reference in zip(texts, references, strict=True):
        facts = reference.answer.facts
        of_question[reference.question.name].append(score(text, facts))
        exact += text.strip() == reference.answer.text
        for fact in facts:
            of_attribute[about(fact)] += Tally.of(text, [fact])
    every = [share for shares in of_question.values() for share in shares]
    return Scores(
        num_questions=len(every),
        facts=sum(every) / max(1, len(every)),
        exact=exact / max(1, len(every)),
        of_question={name: sum(v) / len(v) for name, v in sorted(of_question.items())},
        of_attribute=dict(sorted(of_attribute.items())),
    )


def about(fact: Fact) -> str:
    """What kind of thing a fact states: whoever is on the road counts as one subject."""
    if fact.subject in ROLES:
        return f"road user, {fact.attribute}"
    return fact.subject if fact.attribute in ("is", "are") else f"{fact.subject}, {fact.attribute}"


def usual_answers(said: Iterable[tuple[Question, str]]) -> dict[Question, str]:
    """What is said to each question most often, first in the alphabet among equals."""
    counts: dict[Question, Counter[str]] = defaultdict(Counter)
    for question, text in said:
        counts[question][text] += 1
    return {
        question: min(texts, key=lambda text: (-texts[text], text))
        for question, texts in counts.items()
    }


def said_in_training(
    style: Style, num_drives: int = 100, num_clips: int = 40
) -> Iterator[tuple[Question, str]]:
    """A house's answers on training drives, which are not rendered: it speaks from the scene."""
    for seed in Split.TRAIN.seeds(num_drives):
        drive = Drive(seed)
        for second in range(num_clips):
            scene = drive.scene(last_frame_us(second))
            for question in Question:
                yield question, style.answer(scene, question).text
