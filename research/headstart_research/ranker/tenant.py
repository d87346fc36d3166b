"""What the ranker has of one tenant: its answers, and the weights learnt from them."""

import time
from collections.abc import Sequence
from functools import cache

from headstart.speculation.draft import Match
from headstart_research.ranker.answer_log import COMMON_AFTER, AnswerLog, as_said
from headstart_research.ranker.following import follow
from headstart_research.ranker.learner import Learner
from headstart_research.ranker.network import memory_weights
from headstart_research.ranker.places import Asked

MEMORY = memory_weights()
"""For the first draft: its choices go together if they are one answer's, and the last is best."""
MAX_DRAFT = 128  # tokens: no engine verifies more at a time


class RankedTenant:
    """Drafts for the streams of one tenant from the answers of all of them."""

    def __init__(self, seed: int = 0) -> None:
        self.learner = Learner(seed)
        self._log = AnswerLog()
        self.since_s = time.time()
        """When it began to remember, in seconds since 1970."""

    @property
    def num_bytes(self) -> int:
        return self._log.num_bytes + self.learner.num_bytes

    def draft(
        self, stream: str, question: str, confirmed: Sequence[int], max_tokens: int
    ) -> Sequence[int]:
        log = self._log
        try:
            said = as_said(question, confirmed)
        except (OverflowError, TypeError, ValueError):
            return ()  # no ids that were ever said
        number, turn = log.stream(stream)
        asked = Asked(log.num_answers, number, turn)
        limit = min(max_tokens, MAX_DRAFT)
        weights = self.learner.weights if len(confirmed) else MEMORY
        drafted, match = follow(log.arrays, weights, asked, said, limit)
        return Match(drafted.tolist(), match)

    def learn(self, stream: str, question: str, answer: Sequence[int]) -> bool:
        """Remember an answer; False if it cannot be one."""
        try:
            self._log.learn(stream, question, answer)
        except (OverflowError, TypeError, ValueError):
            return False
        self.learner.give(self._log)
        return True


@cache
def compile_all() -> None:
    """Compile all that a tenant calls, or load it from disk."""
    tenant = RankedTenant()
    for _ in range(COMMON_AFTER):
        tenant.learn("", "", (1, 2, 3, 1, 2, 4))
        tenant.draft("", "", (1,), 4)
        while tenant.learner.take_bite():
            pass
