"""The files of one shard, written one after the other, and what is complete in them.

A clip's records are all in one file, and a file is there as a whole or not at all. So after any
end, a kill or a power cut too, the clips in the files are those that need not be asked again.
"""

import fcntl
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from headstart.errors import CollectError
from headstart_research.collect.record import Record
from headstart_research.collect.record_table import read_columns, read_records, write_records
from headstart_research.collect.shard import Shard

CLIPS_A_FILE = 64
BYTES_A_FILE = 2**28
"""Of features, in memory: whoever trains reads a file at a time."""


class ShardFiles:
    """Used by one process and one thread; another process that opens the same shard is refused."""

    def __init__(
        self,
        folder: Path,
        shard: Shard,
        features: Sequence[str],
        clips_a_file: int,
    ) -> None:
        """Open what is there. ``features`` are the names of those that each record has."""
        self.done: dict[str, set[int]] = defaultdict(set)
        """The numbers of the complete clips of each stream."""
        self.num_records = 0
        self._features, self._clips_a_file = features, clips_a_file
        self._directory = folder / f"shard-{shard.number}-of-{shard.count}"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = (self._directory / "lock").open("a")
        try:
            # Unlike flock's, this lock is not kept alive by an engine's process that was forked.
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise CollectError(
                f"another process collects shard {shard} in {folder}: wait for it, or give this"
                " one another shard (--set)"
            ) from error
        for partial in self._directory.glob("*.partial"):
            partial.unlink()
        files = sorted(self._directory.glob("*.parquet"))
        for file in files:
            self._note(file)
        self._next = int(files[-1].stem) + 1 if files else 0
        self._waiting: list[Record] = []
        self._num_clips = self._num_bytes = 0

    def _note(self, file: Path) -> None:
        for row in read_columns(file, ["stream", "clip"]).to_pylist():
            self.done[row["stream"]].add(row["clip"])
            self.num_records += 1

    def add(self, records: Sequence[Record]) -> None:
        """All records of one clip. They are safe once their file is written."""
        self._waiting += records
        self._num_clips += 1
        self._num_bytes += sum(array.nbytes for array in records[0].features.values())
        if self._num_clips >= self._clips_a_file or self._num_bytes >= BYTES_A_FILE:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        write_records(self._directory / f"{self._next:06d}.parquet", self._waiting, self._features)
        for record in self._waiting:
            self.done[record.stream].add(record.clip)
        self.num_records += len(self._waiting)
        self._next += 1
        self._waiting = []
        self._num_clips = self._num_bytes = 0

    def close(self) -> None:
        """Write what waits, and let another process go on."""
        try:
            self.flush()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def record_files(folder: Path) -> list[Path]:
    """All complete files under a folder, of all shards."""
    return sorted(folder.glob("shard-*-of-*/*.parquet"))


def collected(folder: Path, *, features: bool = True) -> Iterator[Record]:
    """All complete records under a folder, of all shards; with or without their features."""
    for file in record_files(folder):
        yield from read_records(file, features=features)
