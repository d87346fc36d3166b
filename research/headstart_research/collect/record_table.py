"""Records as Parquet: a row a record, each feature a column of bytes and one of its shape."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headstart.errors import CollectError
from headstart.speculation.drafter import Features
from headstart_research.collect.record import Record

SHAPE = "_shape"
_PLAIN = ("stream", "index", "clip", "clip_digest", "question", "finish_reason")


def require_pyarrow() -> Any:
    """pyarrow, or an error that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise CollectError(
            "records are Parquet files and need pyarrow, which is not installed:"
            " pip install 'headstart[train]'"
        ) from error
    import pyarrow

    return pyarrow


def write_records(path: Path, records: Sequence[Record], features: Sequence[str]) -> None:
    """Write a file of records. It has its name only when all of it is on the disk."""
    pa = require_pyarrow()
    columns: dict[str, Any] = {
        name: [getattr(record, name) for record in records] for name in _PLAIN
    }
    columns["prompt_ids"] = [list(record.prompt_ids) for record in records]
    columns["answer_ids"] = [list(record.answer_ids) for record in records]
    for name in features:
        kept = [record.features[name] for record in records]
        columns[name] = _stored_once(pa, kept)
        columns[name + SHAPE] = [list(array.shape) for array in kept]
    table = pa.table(columns, schema=_schema(pa, features))
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            pa.parquet.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        raise CollectError(
            f"{path} cannot be written ({error.strerror}): make room, and run the same command"
            " again; what is complete is kept"
        ) from error


def read_records(path: Path, *, features: bool = True) -> Iterator[Record]:
    """The records of a file, in the order in which they were written.

    Without ``features`` they are not even read: they are most of a file.
    """
    columns = None if features else [*_PLAIN, "prompt_ids", "answer_ids"]
    for row in read_columns(path, columns).to_pylist():
        names = [name for name in row if name + SHAPE in row]
        yield Record(
            **{name: row[name] for name in _PLAIN},
            prompt_ids=tuple(row["prompt_ids"]),
            answer_ids=tuple(row["answer_ids"]),
            features={
                name: np.frombuffer(row[name], "<f2").reshape(row[name + SHAPE]) for name in names
            },
        )


def read_shapes(path: Path) -> dict[str, set[tuple[int, ...]]]:
    """Which shapes each feature has in a file, by the feature's name."""
    pa = require_pyarrow()
    with _damage_named(pa, path):
        columns = [name for name in pa.parquet.read_schema(path).names if name.endswith(SHAPE)]
    table = read_columns(path, columns)
    return {name.removesuffix(SHAPE): set(map(tuple, table[name].to_pylist())) for name in columns}


def read_columns(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A file's table, or these columns of it."""
    pa = require_pyarrow()
    with _damage_named(pa, path):
        return pa.parquet.read_table(path, columns=columns, partitioning=None)


@contextmanager
def _damage_named(pa: Any, path: Path) -> Iterator[None]:
    """Say what to do with a file that cannot be read."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise CollectError(
            f"{path} cannot be read ({error}): delete it, and the same command collects its"
            " records again"
        ) from error


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _stored_once(pa: Any, arrays: Sequence[Features]) -> Any:
    """A column that holds an array once, however many questions about its clip repeat it."""
    places: dict[int, int] = {}
    indices = [places.setdefault(id(array), len(places)) for array in arrays]
    different = {id(array): array for array in arrays}
    values = [different[key].astype("<f2", copy=False).tobytes() for key in places]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(values, pa.binary())
    )


def _schema(pa: Any, features: Sequence[str]) -> Any:
    ids = pa.list_(pa.int32())
    numbers = {"index", "clip"}
    fields = [(name, pa.int64() if name in numbers else pa.string()) for name in _PLAIN]
    fields += [("prompt_ids", ids), ("answer_ids", ids)]
    for name in features:
        fields += [(name, pa.dictionary(pa.int32(), pa.binary())), (name + SHAPE, ids)]
    return pa.schema(fields)
