"""Whether a draft model is worth its work: it computes on a part of the machine, used or not."""

from collections.abc import Hashable, Iterable

from headstart.speculation.budget import MIN_EARNED
from headstart.speculation.draft import Verdict
from headstart.speculation.earnings import LATER, Earnings, Judged

SOURCE = "eventgpt"
"""The source of its drafts."""
PROBE_ANSWERS = 16  # a model not worth its work drafts one answer in so many, to be judged again


class DraftWorth:
    """Judged by stream, from what the target accepted of its drafts. Not thread-safe.

    A draft that the scheduler did not hand to the target earned nothing, right as it may have been:
    it came too late, another source's was preferred, or verifying it would not have paid.
    """

    def __init__(self) -> None:
        self._earnings = Earnings()
        self._num_skipped = 0

    def is_wanted(self, stream: Hashable) -> bool:
        """Whether the model should draft the next answer; after failures only now and then."""
        if self._earnings.accepted(SOURCE, stream, is_opening=False) >= MIN_EARNED:
            return True
        self._num_skipped = (self._num_skipped + 1) % PROBE_ANSWERS
        return self._num_skipped == 0

    def judge(self, stream: Hashable, verdicts: Iterable[Verdict]) -> None:
        """The model drafted this answer."""
        # Wherever its drafts begin: it is asked once for a whole answer.
        passes = [
            Judged(LATER, len(verdict.draft.tokens), verdict.num_accepted)
            for verdict in verdicts
            if verdict.draft.source == SOURCE
        ]
        self._earnings.credit(SOURCE, stream, passes or [Judged(LATER, 1, 0)])
