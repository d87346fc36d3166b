"""Builds an answer from phrases, and collects the facts that they state.

A hash of coarse, visible things (kinds, roles, place, weather) chooses among phrases. So a small
change in the scene can change the words of an answer midway, and a model that sees the scene can
learn the choice. Nothing that the camera cannot see takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from zlib import crc32

from headstart_lab.language.facts import Fact
from headstart_lab.language.phrases import PLAIN
from headstart_lab.language.road_user_phrases import NOUNS, NUMBERS, ROLES
from headstart_lab.language.sighting import Group
from headstart_lab.world.kinds import Kind, Role

Option = TypeVar("Option")

MIN_WORDS = 20


class Phrasing(Enum):
    """Whose phrases are used; the value is their place in the tables."""

    TARGET = 0
    DRAFTER = 1


@dataclass(frozen=True)
class Line:
    """Some words and the facts they state."""

    text: str
    facts: tuple[Fact, ...] = ()

    def __add__(self, other: Line) -> Line:
        between = " " if self.text and other.text else ""
        return Line(self.text + between + other.text, self.facts + other.facts)

    def then(self, text: str) -> Line:
        """The line with ``text`` appended, without a space."""
        return Line(self.text + text, self.facts)


def pick(options: Sequence[Option], *keys: object) -> Option:
    """One of ``options``, the same for the same keys in every process."""
    named = "/".join(str(key.value if isinstance(key, Enum) else key) for key in keys)
    return options[crc32(named.encode()) % len(options)]


def state(phrasing: Phrasing, subject: str, attribute: str, value: str, *keys: object) -> Line:
    """A phrase for one fact."""
    phrases = PLAIN[subject, attribute][value]
    own = phrases[:-1] if phrasing is Phrasing.TARGET and len(phrases) > 1 else phrases[-1:]
    return Line(pick(own, attribute, value, *keys), (Fact(subject, attribute, value),))


def subject_of(group: Group) -> str:
    """The subject of a group's facts."""
    if group.role is Role.AHEAD:
        return "ahead right" if group.kind is Kind.CYCLIST else "ahead"
    if group.role is Role.ONCOMING:
        return "oncoming"
    between = " from " if group.role is Role.CROSSING else " "
    return f"{group.role.value}{between}{group.side.value}"


def number_of(group: Group) -> str:
    """The size of a group, as a value of a fact."""
    return str(group.num) if group.num <= 3 else "several"


def noun_of(group: Group, *keys: object) -> str:
    """The noun for a group, singular or plural."""
    words = NOUNS[group.kind.value]
    offset = 0 if group.num == 1 else 1
    return pick((words[offset], words[offset], words[offset + 2]), "noun", group.kind, *keys)


def role_of(phrasing: Phrasing, group: Group, *keys: object) -> str:
    """What the group does, and where."""
    return pick(ROLES[subject_of(group)][phrasing.value], "role", group.role, group.kind, *keys)


def counted(group: Group, phrasing: Phrasing, *keys: object) -> str:
    """``a``, ``two``, ``several``; the drafter has other words for them."""
    if group.num == 1:
        return "a"
    phrases = NUMBERS[number_of(group)]
    own = phrases[:1] if phrasing is Phrasing.TARGET else phrases[1:2]
    return pick(own, *keys)


def group_facts(group: Group) -> tuple[Fact, ...]:
    """The facts that a mention of the group states."""
    subject = subject_of(group)
    facts = [Fact(subject, "kind", group.kind.value)]
    if group.num > 1:
        facts.append(Fact(subject, "count", number_of(group)))
    if group.colour is not None:
        facts.append(Fact(subject, "colour", group.colour.value))
    return tuple(facts)


def listed(lines: Sequence[Line]) -> Line:
    """``a, b, and c``."""
    facts = tuple(fact for line in lines for fact in line.facts)
    texts = [line.text for line in lines]
    if len(texts) <= 2:
        return Line(" and ".join(texts), facts)
    return Line(", ".join(texts[:-1]) + ", and " + texts[-1], facts)


def sentence(line: Line) -> Line:
    """The line with a capital and a full stop."""
    return Line(line.text[:1].upper() + line.text[1:] + ".", line.facts)


def told(parts: Sequence[Line], *fillers: Line) -> Line:
    """The parts as one answer; fillers follow as long as it has fewer than `MIN_WORDS` words."""
    line = Line("")
    for part in parts:
        line += part
    for filler in fillers:
        if len(line.text.split()) < MIN_WORDS:
            line += filler
    return line


def advice(groups: Sequence[Group], stop_signal: bool, poor_sight: bool, stands: bool) -> str:
    """What a careful driver would do: wait, go on with care, or go on."""
    in_the_way = any(group.role is Role.CROSSING for group in groups)
    in_front = any(
        group.role is Role.AHEAD and group.kind.is_vehicle and group.reach.value == "near"
        for group in groups
    )
    if in_the_way or stop_signal or (in_front and stands):
        return "wait"
    beside = any(group.role in (Role.WALKING, Role.WAITING, Role.AHEAD) for group in groups)
    return "care" if beside or poor_sight else "go"
