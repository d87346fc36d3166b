"""What an engine answers in a closed loop, while all streams wait for an answer; its capacity."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Self

from headstart.engine.headstart import Headstart
from headstart_research.bench.asker import Asked, WholeClip
from headstart_research.bench.workloads import Workload


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


def capacity(engine: Headstart, work: Workload, *, rounds: Iterable[int], warmup: int) -> float:
    """Answers a second while every camera asks again at once.

    The loads of an open workload are shares of bare vLLM's. It is measured over the clips of these
    rounds; the first answers of each camera only warm up. Give rounds that are not played, so that
    their clips are new to the engine, and those of the rounds that are played stay new.
    """
    played = [work.streams(number) for number in rounds]
    streams = [list(chain.from_iterable(of_one)) for of_one in zip(*played, strict=True)]
    askers = [
        WholeClip(engine.session(f"stream-{stream}", f"{work.name}/capacity"), work)
        for stream in range(len(streams))
    ]

    def warm(stream: int) -> None:
        for item in streams[stream][:warmup]:
            askers[stream].ask(item)

    def counted(stream: int) -> list[Asked]:
        return [askers[stream].ask(item) for item in streams[stream][warmup:]]

    with ThreadPoolExecutor(len(streams)) as threads:
        list(threads.map(warm, range(len(streams))))
        begun_s = time.monotonic()
        answered = list(threads.map(counted, range(len(streams))))
    measured = Throughput.of(answered, begun_s)
    return measured.answers / measured.seconds
