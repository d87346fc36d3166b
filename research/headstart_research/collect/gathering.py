"""Works off pieces of a collection, several at a time, and writes their records in order."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from headstart_research.collect.record import Record
from headstart_research.collect.shard_files import ShardFiles

Piece = Callable[[], Sequence[Record]]
"""The work on one clip, whose records are kept together."""


def gather(
    pieces: Iterable[Piece],
    files: ShardFiles,
    at_once: int,
    on_records: Callable[[int], None] = lambda count: None,
) -> None:
    """Do all pieces. ``on_records`` is told how many records each has brought.

    An error ends it, and what was complete before is kept.
    """
    running: deque[Future[Sequence[Record]]] = deque()
    pool = ThreadPoolExecutor(at_once, "collect")

    def keep_oldest() -> None:
        records = running.popleft().result()
        files.add(records)
        on_records(len(records))

    try:
        for piece in pieces:
            running.append(pool.submit(piece))
            if len(running) > at_once:  # one more than run, so that the next clip is read already
                keep_oldest()
        while running:
            keep_oldest()
        files.flush()
    finally:
        # Whoever ends it early does not wait for answers: the models' end ends those as well.
        pool.shutdown(wait=False, cancel_futures=True)
