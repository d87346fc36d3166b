"""Is the drafter worth its work? It takes its part of the machine, used or not."""

from collections.abc import Collection, Hashable

from headstart.drafting.timeline import Stage
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
        passes = [_in_time(words, answer) for words in drafted if words.source == SOURCE]
        passes += [
            (len(fate.tokens), fate.num_accepted) for fate in answer.fates if fate.source == SOURCE
        ]
        self._thrift.earnings.credit(SOURCE, stream, passes or [(1, 0)])


def _in_time(words: Drafted, answer: Answer) -> tuple[int, int]:
    """How many of these words the target had still to say when they came, and how many it did.

    Words that follow the target and never get ahead of it are right, and of no use.
    """
    said = answer.token_ids
    start = max(0, words.start)
    rest = said[start:]
    late = max(0, _num_said(answer, words.made_at_s) - start)
    num_drafted = min(len(words.tokens), len(rest)) - late
    if num_drafted < 1:
        return 1, 0
    return num_drafted, max(0, num_agreeing(words.tokens, rest) - late)


def _num_said(answer: Answer, when_s: float) -> int:
    """Of its tokens, at a moment: as if they had come evenly, as all but drafted ones do."""
    num_tokens = len(answer.token_ids)
    for span in answer.timeline.spans:
        if span.stage is Stage.DECODE:
            if when_s < span.start_s:
                return 0
            share = min(1.0, (when_s - span.start_s) / max(span.duration_s, 1e-9))
            return 1 + int(share * (num_tokens - 1))
    return 0
