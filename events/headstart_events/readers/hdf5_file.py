"""Reads an HDF5 file in the layout of DSEC, which may be hostile.

The only module that reads with libhdf5. It runs in a process with limits (see ``dsec``), and
checks what libhdf5 does not: links out of the file, sizes that chunks claim to unpack to, and
missing chunks.
"""

import io
import math
import struct
import zlib
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart_events.recording import not_installed

MAX_CHUNK_BYTES = 1 << 25
MAX_TINY_CHUNKS = 1000
MIN_CHUNK_VALUES = 64
"""A chunk takes about 20 us to look up, however small it is."""
MAX_MAP_VALUES = 1 << 26
SHUFFLE, DEFLATE, BLOSC = 2, 1, 32001
COLUMN_NAMES = ("x", "y", "t", "p")


class HdfFile:
    """An open file. Every method may raise what libhdf5 raises, or crash the process."""

    def __init__(self, source: str | BinaryIO, num_bytes: int) -> None:
        try:
            import h5py
            import hdf5plugin  # noqa: F401 (registers Blosc, which DSEC is packed with)
        except ImportError as error:
            raise not_installed("reading HDF5", error.name) from error
        # Without a lock, so that other programs can write the file meanwhile.
        self._file = h5py.File(source, "r", locking=False)
        self._num_bytes = num_bytes
        self._columns: dict[str, HdfColumn] = {}

    def describe(self) -> dict[str, Any]:
        """The number of events and of index entries, the time offset, and the sensor if stated."""
        lengths = {len(self.column(f"events/{name}")) for name in COLUMN_NAMES}
        if len(lengths) != 1:
            raise MediaError(f"its columns differ in length ({sorted(lengths)}); copy it again")
        return {
            "num_events": lengths.pop(),
            "num_ms": len(self.column("ms_to_idx")) if "ms_to_idx" in self._file else 0,
            "offset_us": _read_number(self._file, "t_offset"),
            "sensor": _stated_sensor(self._file),
        }

    def column(self, name: str) -> "HdfColumn":
        """A dataset of one integer a row, checked at the first call."""
        if name not in self._columns:
            self._columns[name] = HdfColumn(self._file, name, self._num_bytes)
        return self._columns[name]

    def rectify_map(self) -> NDArray[np.float32]:
        """DSEC's map from pixels to rectified pixels, float32 [height, width, 2]."""
        dataset = _plain_dataset(self._file, "rectify_map", "f")
        if len(dataset.shape) != 3 or not 0 < dataset.size <= MAX_MAP_VALUES:
            raise MediaError(f"its rectify_map has the shape {dataset.shape}; copy it again")
        filters = filters_of(dataset)
        if filters not in ([], [BLOSC]):
            raise MediaError("its rectify_map is packed; repack it, as with h5repack -f NONE")
        if filters:
            for part in dataset.iter_chunks():
                check_blosc_chunk(dataset, tuple(side.start for side in part))
        values: NDArray[np.float32] = dataset[()].astype(np.float32)
        return values

    def close(self) -> None:
        self._file.close()


class HdfColumn:
    """One integer dataset [n] of an HDF5 file; refused unless it can be read safely."""

    def __init__(self, file: Any, name: str, file_bytes: int) -> None:
        self._dataset = dataset = _plain_dataset(file, name)
        if len(dataset.shape) != 1:
            raise MediaError(f"{name} has the shape {dataset.shape}; it must be one column")
        self._length = int(dataset.shape[0])
        num_bytes = self._length * dataset.dtype.itemsize
        filters = filters_of(dataset)
        if dataset.chunks is None:
            if num_bytes > file_bytes:
                raise MediaError(f"{name} declares {num_bytes} bytes in a file of {file_bytes}")
        else:
            self._chunk = int(dataset.chunks[0])
            if not 0 < self._chunk * dataset.dtype.itemsize <= MAX_CHUNK_BYTES:
                raise MediaError(f"{name} is stored in chunks of {self._chunk}; repack it smaller")
            num_chunks = -(-self._length // self._chunk)
            if self._chunk < MIN_CHUNK_VALUES and num_chunks > MAX_TINY_CHUNKS:
                raise MediaError(f"{name} is stored in chunks of {self._chunk}; repack it larger")
            # libhdf5 reads missing chunks as zeros, of any declared length.
            if dataset.id.get_num_chunks() != num_chunks:
                raise MediaError(f"{name} lacks some of its chunks; it is damaged: copy it again")
        if filters not in ([], [SHUFFLE], [BLOSC], [SHUFFLE, BLOSC], [DEFLATE], [SHUFFLE, DEFLATE]):
            raise MediaError(
                f"{name} is packed with the HDF5 filters {filters}; "
                "repack it with Blosc, gzip or none, as with h5repack"
            )
        self._filters = filters
        self._inflated: tuple[int, NDArray[Any]] | None = None

    def __len__(self) -> int:
        return self._length

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The values ``start`` to ``stop``, which must lie in the column."""
        if stop <= start:
            return np.empty(0, dtype=self._dataset.dtype)
        if DEFLATE in self._filters:
            first = start // self._chunk
            chunks = [self._inflate(i) for i in range(first, (stop - 1) // self._chunk + 1)]
            whole = np.concatenate(chunks)
            inflated: NDArray[Any] = whole[start - first * self._chunk :][: stop - start]
            return inflated
        if BLOSC in self._filters:
            for index in range(start // self._chunk, (stop - 1) // self._chunk + 1):
                check_blosc_chunk(self._dataset, (index * self._chunk,))
        values: NDArray[Any] = self._dataset[start:stop]
        return values

    def _inflate(self, index: int) -> NDArray[Any]:
        """Unpack a gzip chunk without libhdf5, which has no limit on what a chunk unpacks to.

        The last chunk is kept, since a search for a time reads it many times.
        """
        if self._inflated is not None and self._inflated[0] == index:
            return self._inflated[1]
        mask, packed = self._dataset.id.read_direct_chunk((index * self._chunk,))
        dtype = self._dataset.dtype
        size = self._chunk * dtype.itemsize
        unpacked = zlib.decompressobj().decompress(packed, size)
        if mask or len(unpacked) != size:
            raise MediaError("a chunk unpacks to the wrong size; it is damaged: copy it again")
        if SHUFFLE in self._filters:
            unpacked = np.frombuffer(unpacked, np.uint8).reshape(dtype.itemsize, -1).T.tobytes()
        values = np.frombuffer(unpacked, dtype=dtype)
        self._inflated = index, values
        return values


def preload() -> None:
    """Load what libhdf5 loads when it first needs it, for a process that will open no more files.

    Raises `MediaError` where the packages for HDF5 are missing.
    """
    try:
        import h5py
        import hdf5plugin
    except ImportError as error:
        raise not_installed("reading HDF5", error.name) from error
    values = np.arange(1000, dtype=np.uint16)
    file = io.BytesIO()
    with h5py.File(file, "w") as written:
        for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            packing = hdf5plugin.Blosc(cname=codec)
            written.create_dataset(codec, data=values, chunks=(500,), **packing)
        written.create_dataset("gzip", data=values, chunks=(500,), compression="gzip", shuffle=True)
        written.attrs["sensor_width"] = written.attrs["sensor_height"] = 1
        names = list(written)
    read = HdfFile(file, file.getbuffer().nbytes)
    for name in names:
        read.column(name).read(0, len(values))
    with suppress(MediaError):
        read.describe()
    read.close()


def filters_of(dataset: Any) -> list[int]:
    """The HDF5 filters a dataset is packed with, in the order they were applied."""
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(index)[0] for index in range(properties.get_nfilters())]


def check_blosc_chunk(dataset: Any, offset: tuple[int, ...]) -> None:
    """Check that a Blosc chunk states a chunk's size; libhdf5 trusts what it states."""
    mask, packed = dataset.id.read_direct_chunk(offset)
    if mask:
        raise MediaError("a chunk leaves out its filters; repack it, as with h5repack")
    (unpacked_bytes,) = struct.unpack_from("<I", packed, 4)
    if unpacked_bytes != math.prod(dataset.chunks) * dataset.dtype.itemsize:
        raise MediaError(f"a chunk claims to unpack to {unpacked_bytes} bytes; copy it again")


def _plain_dataset(file: Any, name: str, kinds: str = "iub") -> Any:
    """A dataset of numbers stored in this very file, not linked from elsewhere."""
    import h5py

    place = file
    for part in name.split("/"):
        if not isinstance(place, h5py.Group) or part not in place:
            raise MediaError(f"it has no {name}; it is not in the layout of DSEC")
        if not isinstance(place.get(part, getlink=True), h5py.HardLink):
            raise MediaError(f"its {name} is a link to elsewhere; copy the data into one file")
        place = place[part]
    if not isinstance(place, h5py.Dataset) or place.dtype.kind not in kinds:
        raise MediaError(f"its {name} is not a dataset of numbers of its kind")
    if place.is_virtual or place.external or place.shape is None:
        raise MediaError(f"its {name} is stored in another file; copy the data into one file")
    return place


def _read_number(file: Any, name: str) -> int:
    if name not in file:
        return 0
    dataset = _plain_dataset(file, name)
    if dataset.shape not in ((), (1,)) or dataset.chunks is not None:
        raise MediaError(f"its {name} is not a single number")
    return int(np.asarray(dataset[()]).reshape(-1)[0])


def _stated_sensor(file: Any) -> list[int] | None:
    """The size in the two attributes that our writer adds; DSEC's own files do not state it."""
    sides = []
    for name in ("sensor_width", "sensor_height"):
        if name not in file.attrs:
            return None
        attribute = file.attrs.get_id(name)
        if attribute.shape != () or attribute.dtype.kind not in "iu":
            raise MediaError(f"its {name} is not a single number")
        sides.append(int(file.attrs[name]))
    return sides
