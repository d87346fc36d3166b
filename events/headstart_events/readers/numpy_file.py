"""numpy's own files: EventGPT's pickled ``.npy``, structured ``.npy``, and ``.npz``.

Declared sizes are checked against the bytes that are there before an array is made.
"""

import io
import tokenize
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.readers.pickled import read_pickled_columns
from headstart_events.recording import LoadedRecording, Opening, Recording

COLUMNS = ("x", "y", "t", "p")
MAX_HEADER_BYTES = 2**16
MAX_MEMBERS = 1000
PIECE_BYTES = 1 << 20
MAX_BYTES_PER_EVENT = 64
"""Four columns of 64 bits are half of this; the rest is headers and columns not used."""


def open_npy(opening: Opening) -> Recording:
    """Open a ``.npy``: a pickled dictionary or a structured array of x, y, t, p."""
    _check_size(opening, opening.num_bytes)
    with opening.open() as file:
        data = memoryview(file.read())
    dtype, shape, start = _read_header(data)
    if dtype.hasobject:
        if not opening.allow_pickle:
            raise MediaError("it is pickled, which is not read here; save it with numpy.savez")
        if shape != ():
            raise MediaError("it holds many pickled objects; save x, y, t, p with numpy.savez")
        columns = read_pickled_columns(data[start:])
        return _load(opening, "numpy .npy, a pickled dictionary as EventGPT's", columns, None)
    if dtype.names is None:
        raise MediaError("it holds a single plain array; save x, y, t, p with numpy.savez")
    table = _array(dtype, shape, data[start:])
    columns = {name: table[name] for name in dtype.names}
    return _load(opening, "numpy .npy, a structured array", columns, None)


def open_npz(opening: Opening) -> Recording:
    """Open a ``.npz``: arrays x, y, t, p, and optionally ``sensor`` as [width, height]."""
    columns: dict[str, NDArray[Any]] = {}
    _check_members(opening)
    with opening.open() as file, zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        for name in (*COLUMNS, "sensor"):
            if f"{name}.npy" in names:
                columns[name] = _read_member(opening, archive, f"{name}.npy")
    stated = None
    if "sensor" in columns:
        size = columns["sensor"]
        if size.shape != (2,) or size.dtype.kind not in "iu":
            raise MediaError("its array sensor is not two integers, width and height")
        stated = SensorSize(int(size[0]), int(size[1]))
    return _load(opening, "numpy .npz", columns, stated)


def _check_members(opening: Opening) -> None:
    """Refuse an archive of very many members before zipfile makes an object of each."""
    num_members = 0
    with opening.open() as file:
        while piece := file.read(PIECE_BYTES):
            num_members += piece.count(b"PK\x01\x02")
            if num_members > MAX_MEMBERS:
                raise MediaError("it has too many members; save only x, y, t, p and sensor")


def _read_member(opening: Opening, archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    """Read one array of an archive, unpacking no more than its header declares."""
    if archive.getinfo(member).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise MediaError(f"{member} is packed in a way numpy does not; save it with numpy.savez")
    with archive.open(member) as file:
        head = file.read(MAX_HEADER_BYTES)
        dtype, shape, start = _read_header(memoryview(head))
        if dtype.kind not in "iub":
            raise MediaError(f"{member} is {dtype}; save integer columns with numpy.savez")
        opening.check_count(max(shape, default=0))
        content = head[start:] + file.read(max(0, _num_bytes(dtype, shape) - len(head) + start))
    return _array(dtype, shape, memoryview(content))


def _load(
    opening: Opening, format: str, columns: Mapping[str, NDArray[Any]], stated: SensorSize | None
) -> Recording:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise MediaError(f"it has no column {', '.join(missing)}; it needs x, y, t and p")
    sensor = opening.resolve_sensor(stated)
    opening.check_count(len(columns["t"]) if columns["t"].ndim else 0)
    x, y, t, p = (columns[name] for name in COLUMNS)
    return LoadedRecording(opening, format, Events.checked(x, y, t, p, sensor, sort=opening.sort))


def _check_size(opening: Opening, num_bytes: int) -> None:
    if num_bytes > opening.max_events * MAX_BYTES_PER_EVENT + 65_536:
        opening.check_count(num_bytes // MAX_BYTES_PER_EVENT)


def _read_header(data: memoryview) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """The dtype and shape a ``.npy`` declares, and where its content starts."""
    stream = io.BytesIO(data[:MAX_HEADER_BYTES])
    npy: Any = np.lib.format  # numpy leaves these three without types
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise MediaError(f"it is of .npy version {version}; save it again with numpy.save")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, _, dtype = read(stream)
    except tokenize.TokenError as error:
        raise MediaError("its header is not one that numpy writes; copy it again") from error
    return dtype, shape, stream.tell()


def _num_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    if len(shape) != 1 or shape[0] < 0 or not 0 < dtype.itemsize <= MAX_BYTES_PER_EVENT:
        raise MediaError(f"it declares {dtype} {list(shape)}; give one value per event")
    return shape[0] * dtype.itemsize


def _array(dtype: np.dtype[Any], shape: tuple[int, ...], content: memoryview) -> NDArray[Any]:
    num_bytes = _num_bytes(dtype, shape)
    if num_bytes > len(content):
        raise MediaError(
            f"it declares {num_bytes} bytes and {len(content)} are there; "
            "it is truncated: copy it again"
        )
    return np.frombuffer(content[:num_bytes], dtype=dtype)
