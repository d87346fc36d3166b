"""What an engine answers in a closed loop, counted while all streams wait for an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from headstart_research.bench.asker import Asked


@dataclass(frozen=True, slots=True)
class Throughput:
    """Answers and their tokens, in so many seconds."""

    seconds: float
    answers: float
    tokens: float

    @classmethod
    def of(cls, streams: Sequence[Sequence[Asked]], begun_s: float) -> Self:
        """Count from ``begun_s``, when all streams asked, until the first has no more to ask.

        After that fewer streams share the engine, which is another load. An answer that is not
        complete by then counts by the share of its time that lies before.
        """
        until_s = min(stream[-1].answered_s for stream in streams)
        shares = [(one, _share_until(until_s, one)) for stream in streams for one in stream]
        return cls(
            until_s - begun_s,
            sum(share for _, share in shares),
            sum(share * len(one.answer.token_ids) for one, share in shares),
        )


def _share_until(until_s: float, one: Asked) -> float:
    if one.answered_s <= until_s:
        return 1.0
    return max(0.0, until_s - one.asked_s) / (one.answered_s - one.asked_s)
