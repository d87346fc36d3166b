"""Scores answers: how many facts an answer states right, states wrong, or leaves out.

The facts are those of the model's own reference answer, and so only what its camera can see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headstart_lab.language.facts import Fact, Finding, find, score
from headstart_lab.language.questions import Question
from headstart_lab.language.road_user_phrases import ROLES
from headstart_lab.language.styles import Answer


@dataclass(frozen=True)
class Reference:
    """The reference answer to a kind of question."""

    question: Question
    answer: Answer


@dataclass(frozen=True)
class Tally:
    """Counts of facts that a text states right, states wrong, or leaves out."""

    right: int
    wrong: int
    absent: int

    @property
    def total(self) -> int:
        """The number of facts."""
        return self.right + self.wrong + self.absent

    @classmethod
    def of(cls, text: str, facts: Sequence[Fact]) -> Tally:
        """Count what ``text`` says of ``facts``."""
        found = Counter(find(text, fact) for fact in facts)
        return cls(found[Finding.RIGHT], found[Finding.WRONG], found[Finding.ABSENT])

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.right + other.right, self.wrong + other.wrong, self.absent + other.absent)


@dataclass(frozen=True)
class Scores:
    """The scores of a set of answers.

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
    """The name under which a fact is counted; all road users count as one subject."""
    if fact.subject in ROLES:
        return f"road user, {fact.attribute}"
    return fact.subject if fact.attribute in ("is", "are") else f"{fact.subject}, {fact.attribute}"


def usual_answers(said: Iterable[tuple[Question, str]]) -> dict[Question, str]:
    """The most frequent answer to each question; among equals, the first in the alphabet."""
    counts: dict[Question, Counter[str]] = defaultdict(Counter)
    for question, text in said:
        counts[question][text] += 1
    return {
        question: min(texts, key=lambda text: (-texts[text], text))
        for question, texts in counts.items()
    }
