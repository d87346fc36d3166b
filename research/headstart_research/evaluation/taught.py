"""Registered drafters that are told known answers before held-out ones."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from headstart.drafters.registry import Ingredients, MemoryOptions, registration
from headstart.errors import EvaluationError
from headstart.speculation.drafter import Drafter, LearningDrafter
from headstart_research.evaluation.known_answers import KnownAnswers
from headstart_research.evaluation.workload import TENANT


@runtime_checkable
class Seedable(Protocol):
    """It can be told answers of no stream, as memory can."""

    def seed(self, tenant: str, question: str, answer: Sequence[int]) -> None:
        """Learn an answer that all streams of a tenant may profit from."""


@dataclass(frozen=True)
class Taught:
    """Makes drafters of one name that all know the same answers, and learn on their own."""

    name: str
    """As `headstart.drafters.registry` has it."""
    known: KnownAnswers

    def drafter(self) -> Drafter:
        if not self.known.records:
            return self._new()
        try:
            return deepcopy(self._pupil)
        except TypeError as error:
            raise EvaluationError(
                f"{self.name} cannot be copied ({error}), and so cannot start every stream with the"
                " same answers: leave --learn-from out, or give its class __deepcopy__"
            ) from error

    @cached_property
    def _pupil(self) -> Drafter:
        pupil = self._new()
        if not isinstance(pupil, Seedable):
            return pupil
        for record in self.known.records:
            pupil.seed(TENANT, record.question, record.answer_ids)
            if isinstance(pupil, LearningDrafter):
                pupil.settle()
        return pupil

    def _new(self) -> Drafter:
        options = MemoryOptions(warm=bool(self.known.records))
        return registration(self.name).built(Ingredients(options))
