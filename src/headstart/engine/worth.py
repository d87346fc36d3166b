"""Is the drafter worth its work? It takes its part of the machine, used or not."""

from collections.abc import Hashable

from headstart.engine.answer import Answer
from headstart.engine.drafter_engine import SOURCE
from headstart.planner.thrift import Thrift


class DrafterWorth:
    """By stream, from what the target accepted of the drafter's words. Not thread-safe.

    Words the scheduler did not hand over count as nothing, right as they may have been: they came
    when they had been said, or others' were better, or verifying them would not have paid.
    """

    def __init__(self) -> None:
        self._thrift = Thrift()

    def is_wanted(self, stream: Hashable) -> bool:
        """Whether to start it for the next answer; after failures only now and then."""
        return self._thrift.worth_starting(SOURCE, stream)

    def judge(self, stream: Hashable, answer: Answer) -> None:
        """It was started for this answer."""
        passes = [
            (len(fate.tokens), fate.num_accepted) for fate in answer.fates if fate.source == SOURCE
        ]
        self._thrift.earnings.credit(SOURCE, stream, passes or [(1, 0)])
