"""The capacity of an engine: answers a second while every camera asks again at once.

The loads of an open workload are shares of bare vLLM's.
"""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from headstart.engine.headstart import Headstart
from headstart_research.bench.asker import Asked, WholeClip
from headstart_research.bench.throughput import Throughput
from headstart_research.bench.workloads import Workload


def capacity(engine: Headstart, work: Workload, *, rounds: Iterable[int], warmup: int) -> float:
    """Measure it over the clips of these rounds; the first answers of each camera only warm up.

    Give rounds that are not played, so that their clips are new to the engine, and those of the
    rounds that are played stay new.
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
