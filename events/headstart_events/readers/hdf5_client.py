"""Reads HDF5 files through a helper process.

A damaged file can crash libhdf5 or hang it (``tests/media/fuzz.py`` finds such files in minutes).
So libhdf5 runs in a helper process with limits on memory and on the time of one request. If a file
ends the helper, that file is refused and the next request starts a new helper.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError

MAX_HEAD_BYTES = 65_536


class Hdf5Client:
    """One helper process, started by the first request. Thread-safe: one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def describe(self, path: Path) -> dict[str, Any]:
        head, _ = self._ask(path, {"ask": "describe"})
        return head

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        return self._array(path, {"ask": "read", "column": column, "start": start, "stop": stop})

    def rectify_map(self, path: Path) -> NDArray[Any]:
        return self._array(path, {"ask": "map"})

    def close_file(self, path: Path) -> None:
        """Close a file in the helper; the next request for it opens it again."""
        if self._process is not None:
            self._ask(path, {"ask": "close"})

    def stop(self) -> None:
        """End the helper; the next request starts another."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Forget the helper after a fork, in the child: it belongs to the parent."""
        if self._process is not None:
            self._process.returncode = 0  # so that Popen does not wait for the parent's child
        self._lock, self._process = threading.Lock(), None

    def _array(self, path: Path, question: dict[str, Any]) -> NDArray[Any]:
        head, content = self._ask(path, question)
        return np.frombuffer(content, dtype=np.dtype(head["dtype"])).reshape(head["shape"])

    def _ask(self, path: Path, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        request = json.dumps({"path": str(path.resolve()), **question}).encode() + b"\n"
        with self._lock:
            process = self._process or self._start()
            questions, answers = process.stdin, process.stdout
            assert questions is not None
            assert answers is not None
            try:
                questions.write(request)
                questions.flush()
                head = json.loads(answers.readline(MAX_HEAD_BYTES))
                content = answers.read(head["num_bytes"])
                if len(content) < head["num_bytes"]:
                    raise EOFError
            except (OSError, EOFError, ValueError) as error:
                self._end()
                raise MediaError(
                    f"{path} is damaged: the HDF5 library broke down over it; copy it again"
                ) from error
            except BaseException:  # interrupted: the next read would get the rest of this answer
                self._end()
                raise
        if "error" in head:
            raise MediaError(head["error"])
        return head, content

    def _start(self) -> subprocess.Popen[bytes]:
        search = os.pathsep.join(filter(None, sys.path))  # it finds what this process finds
        # One thread, because every thread takes memory of the helper's limit.
        settings = {"PYTHONPATH": search, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headstart_events.readers.hdf5_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **settings},
            )
        except OSError as error:
            raise MediaError(
                f"cannot start a process to read HDF5 ({error}); convert the file to .npz elsewhere"
            ) from error
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


CLIENT = Hdf5Client()
"""The client that all readers share: one helper serves any number of files."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CLIENT.forget)
