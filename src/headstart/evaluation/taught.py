"""Registered drafters that are told known answers before held-out ones."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from headstart.errors import EvaluationError
from headstart.evaluation.known_answers import KnownAnswers
from headstart.evaluation.workload import TENANT
from headstart.speculation.drafter import Drafter, DraftRequest
from headstart.speculation.registry import MemoryOptions, registration


@runtime_checkable
class Seedable(Protocol):
    """It can be told answers of no stream, as memory can."""

    def seed(self, tenant: str, question: str, answer: Sequence[int]) -> None:
        """Learn an answer that all streams of a tenant may profit from."""


@runtime_checkable
class Settling(Protocol):
    """It learns in the background."""

    def settle(self) -> None:
        """Wait until all that was said has been learnt from."""


@dataclass(frozen=True)
class Taught:
    """Makes drafters of one name that all know the same answers, and learn on their own."""

    name: str
    """As `headstart.speculation.registry` has it."""
    known: KnownAnswers

    def drafter(self) -> Drafter:
        """A new one. Where it learns in the background, it is given the time for it."""
        if not self.known.records:
            return self._settled(self._new())
        try:
            return self._settled(deepcopy(self._pupil))
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
            if isinstance(pupil, Settling):
                pupil.settle()
        return pupil

    def _new(self) -> Drafter:
        return registration(self.name).build(MemoryOptions(warm=bool(self.known.records)))

    @staticmethod
    def _settled(drafter: Drafter) -> Drafter:
        return Settled(drafter, drafter) if isinstance(drafter, Settling) else drafter


class Settled:
    """A `Drafter` that has learnt from an answer before the next question comes.

    A camera leaves it that time. Without waiting, figures would depend on how busy the machine is.
    """

    def __init__(self, drafter: Drafter, learner: Settling) -> None:
        self._drafter, self._learner = drafter, learner

    @property
    def name(self) -> str:
        return self._drafter.name

    def begin(self, request: DraftRequest) -> None:
        self._drafter.begin(request)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        return self._drafter.propose(request_id, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._drafter.finish(request_id, answer)
        self._learner.settle()
