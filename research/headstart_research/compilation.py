"""How functions are compiled: by numba, when they are first called, and kept on disk.

Only modules that need numba import this one: it is no requirement of the package, and comes with
vLLM.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from llvmlite.binding import ffi
from numba import njit


def compiled(function: Any) -> Any:
    """Compile when it is first called, and keep the machine code on disk where that is possible.

    It runs without Python's lock: a thread that computes holds up nobody.
    """
    # numba keeps code by the date of its own file, but it contains constants and functions of the
    # files beside it. So the name it is kept by tells what all of them said.
    function.__qualname__ += f"_{_sources(Path(function.__code__.co_filename).parent)}"
    # Nothing raises: a division by zero gives what is no number, and is found out later.
    options = {"nogil": True, "fastmath": True, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no directory can be written
        return njit(**options)(function)


@cache
def _sources(directory: Path) -> str:
    """A digest of all that this file and those of a directory say."""
    files = [Path(__file__), *sorted(directory.glob("*.py"))]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def _have_no_dict(library: Any) -> None:
    """Let llvmlite's library say that it has no ``__dict__``; it claims to have any attribute.

    vLLM on a CPU looks into the ``__dict__`` of every value of every module when an engine starts,
    and would end there in a process that has imported numba before.
    """
    claims = type(library).__getattr__

    def getattr_(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return claims(self, name)

    type(library).__getattr__ = getattr_


_have_no_dict(ffi.lib)
