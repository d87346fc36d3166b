"""What a finished request reports of its drafts, from the scheduler to the front end.

The report travels in the field in which vLLM lets a finished request leave data for its caller,
``kv_transfer_params``, so it comes with the answer, also through vLLM's own server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from headstart.speculation.draft import Draft
from headstart.speculation.verdict import Verdict

FIELD = "headstart"
MAX_VERDICTS = 512  # of one answer, the first ones


@dataclass(frozen=True)
class Report:
    """The passes of the target over one answer."""

    accepted: tuple[int, ...]
    """How many drafted tokens each pass accepted."""
    verdicts: tuple[Verdict, ...]
    num_remembered: int = 0
    """Answers in the engine's memory, of all streams, when this one was complete."""

    def params(self) -> dict[str, Any]:
        """The form `parse` reads: plain values only."""
        verdicts = [
            [
                verdict.draft.source,
                verdict.draft.start,
                list(verdict.draft.tokens),
                verdict.draft.made_at_s,
                verdict.num_accepted,
            ]
            for verdict in self.verdicts
        ]
        return {
            FIELD: {
                "accepted": list(self.accepted),
                "verdicts": verdicts,
                "remembered": self.num_remembered,
            }
        }

    @classmethod
    def parse(cls, params: Mapping[str, Any] | None) -> Self | None:
        """What an answer brought back, if it brought anything of ours."""
        given = (params or {}).get(FIELD)
        if given is None:
            return None
        verdicts = tuple(
            Verdict(Draft(tuple(tokens), source, made_at_s, start), num_accepted)
            for source, start, tokens, made_at_s, num_accepted in given["verdicts"]
        )
        return cls(tuple(given["accepted"]), verdicts, given["remembered"])


class PassRecord:
    """The passes of one request, as they happen."""

    def __init__(self) -> None:
        self._handed: Draft | None = None
        self._passes: list[tuple[int, int, int]] = []
        """With a draft: after how many tokens, how many were accepted, and where it ended."""
        self._verdicts: list[Verdict] = []

    def hand(self, draft: Draft) -> None:
        """The next pass verifies this."""
        self._handed = draft

    def passed(self, start: int, num_scheduled: int, num_said: int) -> None:
        """A pass after ``start`` tokens said ``num_said``, and verified ``num_scheduled``.

        vLLM may have taken only the beginning of what it was handed. Passes that verify nothing
        need not be told of: each of them says one token.
        """
        handed, self._handed = self._handed, None
        if handed is None or not num_scheduled:
            return
        tokens = handed.tokens[:num_scheduled]
        num_accepted = min(max(0, num_said - 1), len(tokens))
        self._passes.append((start, num_accepted, start + num_said))
        if tokens and len(self._verdicts) < MAX_VERDICTS:
            if (len(tokens), start) != (len(handed.tokens), handed.start):
                handed = replace(handed, tokens=tokens, start=start)
            self._verdicts.append(Verdict(handed, num_accepted))

    def report(self, answer: Sequence[int], num_said: int, num_remembered: int = 0) -> Report:
        """Of the whole answer. Tokens accepted beyond its end were not the answer's.

        ``num_said`` counts those beyond, too: with stop strings, or if it was aborted.
        """

        def within(start: int, count: int) -> int:
            return min(count, max(0, len(answer) - start))

        verdicts = tuple(
            replace(verdict, num_accepted=within(verdict.draft.start, verdict.num_accepted))
            for verdict in self._verdicts
        )
        accepted, place = list[int](), 0
        for start, count, end in self._passes:
            accepted += [0] * (start - place)
            accepted.append(within(start, count))
            place = end
        accepted += [0] * (num_said - place)
        return Report(tuple(accepted), verdicts, num_remembered)
