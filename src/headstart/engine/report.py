"""What a finished request reports of its drafts, from the scheduler to whoever asked.

It travels in the field in which vLLM lets a finished request leave word for its caller,
``kv_transfer_params``, so it comes with the answer and also through vLLM's own server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from headstart.drafting.board import Proposal
from headstart.drafting.fate import Fate

FIELD = "headstart"
MAX_FATES = 512  # of one answer, the first ones


@dataclass(frozen=True)
class Report:
    """The passes of the target over one answer."""

    accepted: tuple[int, ...]
    """How many drafted tokens each pass accepted."""
    fates: tuple[Fate, ...]
    num_remembered: int = 0
    """Answers in the engine's memory, of all streams, when this one was complete."""

    def params(self) -> dict[str, Any]:
        """The form `parse` reads: plain values only."""
        fates = [
            [fate.source, fate.start, list(fate.tokens), fate.made_at_s, fate.num_accepted]
            for fate in self.fates
        ]
        return {
            FIELD: {
                "accepted": list(self.accepted),
                "fates": fates,
                "remembered": self.num_remembered,
            }
        }

    @classmethod
    def parse(cls, params: Mapping[str, Any] | None) -> Self | None:
        """What an answer brought back, if it brought anything of ours."""
        given = (params or {}).get(FIELD)
        if given is None:
            return None
        fates = tuple(
            Fate(source, start, tuple(tokens), made_at_s, num_accepted)
            for source, start, tokens, made_at_s, num_accepted in given["fates"]
        )
        return cls(tuple(given["accepted"]), fates, given["remembered"])


class PassRecord:
    """The passes of one request, as they happen."""

    def __init__(self) -> None:
        self._handed: Proposal | None = None
        self._passes: list[tuple[int, int]] = []
        self._fates: list[Fate] = []

    def hand(self, proposal: Proposal) -> None:
        """This is about to be verified."""
        self._handed = proposal

    def passed(self, start: int, num_scheduled: int, num_said: int) -> None:
        """A pass after ``start`` tokens said ``num_said``, ``num_scheduled`` of them drafted.

        vLLM may have taken only the beginning of what it was handed.
        """
        handed, self._handed = self._handed, None
        tokens = handed.tokens[:num_scheduled] if handed is not None else ()
        num_accepted = min(max(0, num_said - 1), len(tokens))
        self._passes.append((start, num_accepted))
        if handed is not None and tokens and len(self._fates) < MAX_FATES:
            fate = Fate(handed.source, start, tokens, handed.made_at_s, num_accepted)
            self._fates.append(fate)

    def report(self, answer: Sequence[int], num_remembered: int = 0) -> Report:
        """Of the whole answer. Tokens accepted beyond its end were not the answer's."""
        accepted = [min(count, max(0, len(answer) - start)) for start, count in self._passes]
        fates = tuple(
            Fate(
                fate.source,
                fate.start,
                fate.tokens,
                fate.made_at_s,
                min(fate.num_accepted, max(0, len(answer) - fate.start)),
            )
            for fate in self._fates
        )
        return Report(tuple(accepted), fates, num_remembered)
