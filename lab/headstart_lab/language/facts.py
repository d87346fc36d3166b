"""Facts, and finding them in free text.

A fact is found by any phrase that either model uses for it, not by a whole sentence. A fact about a
road user (``ahead``, ``crossing from left``) is looked for in the clauses that mention that role, a
fact about a side of the road in the clauses that name the side, and other facts in the whole text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache

from headstart_lab.language.phrases import PLAIN, SCOPES
from headstart_lab.language.road_user_phrases import NOUNS, NUMBERS, ROLES


@dataclass(frozen=True)
class Fact:
    """One true statement about a scene: ``Fact("traffic light", "colour", "red")``."""

    subject: str
    attribute: str
    value: str


class Finding(Enum):
    """What a text says of a fact."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"


def find(text: str, fact: Fact) -> Finding:
    """Whether ``text`` states the fact, states another value instead, or neither."""
    values = _values(fact)
    scope = _scope(fact.subject)
    parts = [text.lower()]
    if scope is not None:
        parts = [clause for clause in _clauses(parts[0]) if scope.search(clause)]
    said = {value for value, pattern in values.items() for part in parts if pattern.search(part)}
    if fact.value in said:
        return Finding.RIGHT
    return Finding.WRONG if said else Finding.ABSENT


def score(text: str, facts: tuple[Fact, ...]) -> float:
    """The share of ``facts`` that ``text`` states right; 1.0 if there is none to state."""
    if not facts:
        return 1.0
    return sum(find(text, fact) is Finding.RIGHT for fact in facts) / len(facts)


_BREAK = re.compile(r"[.,;:!?]|\band\b|\bwhile\b|\bwith\b|\bas\b|\bplus\b|\bbut\b")


@cache
def _clauses(text: str) -> tuple[str, ...]:
    return tuple(clause.strip() for clause in _BREAK.split(text) if clause.strip())


@cache
def _scope(subject: str) -> re.Pattern[str] | None:
    if subject in ROLES:
        return _any(phrase for phrases in ROLES[subject] for phrase in phrases)
    return _any(SCOPES[subject]) if subject in SCOPES else None


@cache
def _patterns(subject: str, attribute: str) -> dict[str, re.Pattern[str]]:
    if subject in ROLES:
        table = {"kind": NOUNS, "count": NUMBERS, "colour": PLAIN["thing", "colour"]}[attribute]
    else:
        table = PLAIN[subject, attribute]
    return {value: _any(phrases) for value, phrases in table.items()}


def _values(fact: Fact) -> dict[str, re.Pattern[str]]:
    return _patterns(fact.subject, fact.attribute)


def _any(phrases: Iterable[str]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(phrase.lower()) for phrase in phrases)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])")
