"""The helper process that calls libhdf5, so that a file that crashes it crashes nothing else.

``hdf5_client`` runs it as ``python -m headstart_events.readers.hdf5_server``. A request is a line
of JSON on stdin: a path, and what to read of it. The answer on stdout is a line of JSON, then as
many bytes as that line says. The process ends when stdin is closed.
"""

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart_events.readers.hdf5_file import HdfFile
from headstart_events.recording import damage_reported

MAX_DATA_BYTES = 640 << 20
MAX_CPU_S = 1.0
"""For one request; a block of a million events takes a tenth of it."""


def answer(files: dict[str, HdfFile], request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The JSON and the bytes that answer a request."""
    path = request["path"]
    if request["ask"] in ("close", "describe"):
        _close(files, path)  # a path that is opened again may have been written again
    if request["ask"] == "close":
        return {}, b""
    if path not in files:
        files[path] = HdfFile(path, Path(path).stat().st_size)
    file = files[path]
    if request["ask"] == "describe":
        return file.describe(), b""
    if request["ask"] == "map":
        return _packed(file.rectify_map())
    return _packed(file.column(request["column"]).read(request["start"], request["stop"]))


def _close(files: dict[str, HdfFile], path: str) -> None:
    if path in files:
        files.pop(path).close()


def _packed(values: NDArray[Any]) -> tuple[dict[str, Any], bytes]:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return {"dtype": little.dtype.str, "shape": little.shape}, little.tobytes()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    files: dict[str, HdfFile] = {}
    for line in requests:
        request = json.loads(line)
        _limit_time(MAX_CPU_S)
        path = request["path"]
        try:
            with damage_reported(Path(path)):
                head, content = answer(files, request)
        except MediaError as error:
            head, content = {"error": str(error)}, b""
            with suppress(MediaError), damage_reported(Path(path)):
                _close(files, path)
        _limit_time(0.0)
        answers.write(json.dumps({**head, "num_bytes": len(content)}).encode() + b"\n")
        answers.write(content)
        answers.flush()


def _limit_time(cpu_s: float) -> None:
    """Let the system end the process after so much CPU time; 0 lifts the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu_s)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA_BYTES, MAX_DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
