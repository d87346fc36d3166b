"""Is the drafter worth its work? It takes its part of the machine, used or not."""

from collections.abc import Collection, Hashable

from headstart.drafting.verdict import num_agreeing
from headstart.engine.answer import Answer
from headstart.engine.drafter_engine import SOURCE
from headstart.engine.wire import Drafted
from headstart.planner.thrift import Thrift


class DrafterWorth:
    """By stream, from what the drafter said and the target then answered. Not thread-safe."""

    def __init__(self) -> None:
        self._thrift = Thrift()

    def is_wanted(self, stream: Hashable) -> bool:
        """Whether to start it for the next answer; after failures only now and then."""
        return self._thrift.worth_starting(SOURCE, stream)

    def judge(self, stream: Hashable, drafted: Collection[Drafted], answer: Answer) -> None:
        """It was started for this answer; who said nothing in time was of no use."""
        said = answer.token_ids
        passes = [
            (min(len(words.tokens), len(rest)), num_agreeing(words.tokens, rest))
            for words in drafted
            if words.source == SOURCE and (rest := said[max(0, words.start) :])
        ]
        passes += [
            (len(fate.tokens), fate.num_accepted) for fate in answer.fates if fate.source == SOURCE
        ]
        self._thrift.earnings.credit(SOURCE, stream, passes or [(1, 0)])
