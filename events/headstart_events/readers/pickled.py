"""Reads pickled numpy arrays without running anything that the file names.

EventGPT ships its events as a pickle, and a pickle is a program. This module interprets the few
instructions that a dictionary of arrays needs. It calls no function that a file names: the names of
numpy's own rebuilders are matched as text, and their work is done here, after sizes are checked
against the bytes that are there.

Every value of a file is checked by its type first, and only text is hashed, compared or printed.
With other values that could take forever: a tuple that holds another twice, nested sixty times,
has 2**60 parts.
"""

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError

MAX_INSTRUCTIONS = 10_000
"""A dictionary of four arrays takes about a hundred."""

ARRAY_REBUILDERS = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
SCALAR_REBUILDERS = {"numpy.core.multiarray scalar", "numpy._core.multiarray scalar"}
ARRAY_TYPE = "numpy ndarray"
DTYPE_TYPE = "numpy dtype"
KNOWN_NAMES = {*ARRAY_REBUILDERS, *SCALAR_REBUILDERS, ARRAY_TYPE, DTYPE_TYPE}
BYTE_ORDERS = {"<", ">", "|", "="}
DTYPE_CODES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"b1", "O8"}


@dataclass(frozen=True)
class _Name:
    """The name of a function or type in the file; it is never looked up."""

    text: str


@dataclass
class _Dtype:
    """A dtype that is being built; its byte order comes with its state."""

    code: str
    order: str = "<"

    def set_state(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) >= 2 and _is_order(state[1])):
            raise _refusal("a dtype's state")
        self.order = "<" if state[1] in "|=" else state[1]


@dataclass
class _Array:
    """An array that is being built; its content comes with its state."""

    content: NDArray[Any] | list[Any] = field(default_factory=list)

    def set_state(self, state: Any) -> None:
        match state:
            case (int(), tuple() as shape, _Dtype() as dtype, bool(), content):
                pass
            case _:
                raise _refusal("an array's state")
        if dtype.code == "O8":
            if not isinstance(content, list) or len(shape) or len(content) != 1:
                raise _refusal("an array of objects that is not a single dictionary")
            self.content = content
            return
        if len(shape) != 1 or not isinstance(content, memoryview):
            raise _refusal("an array that is not one column of plain numbers")
        column = np.frombuffer(content, dtype=np.dtype(dtype.order + dtype.code))
        if type(shape[0]) is not int or shape[0] != len(column):
            raise _refusal(f"an array of another shape than its {len(column)} values")
        self.content = column


def read_pickled_columns(data: memoryview) -> dict[str, NDArray[Any]]:
    """The arrays of a pickled dictionary, by name; its other values are left out."""
    result = _Interpreter(data).run()
    if isinstance(result, _Array) and isinstance(result.content, list):
        result = result.content[0]
    if not isinstance(result, dict):
        raise _refusal("something other than a dictionary")
    return {
        key: value.content
        for key, value in result.items()
        if isinstance(key, str)
        and isinstance(value, _Array)
        and not isinstance(value.content, list)
    }


def _refusal(what: str) -> MediaError:
    return MediaError(
        f"the pickle holds {what}, and only a dictionary of plain arrays is read from one; "
        "save the events again with numpy.savez(path, x=x, y=y, t=t, p=p)"
    )


class _Interpreter:
    """Pickle's stack machine, without the instructions that import or call."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        for _ in range(MAX_INSTRUCTIONS):
            code = self._take(1)[0]
            if code == ord("."):
                return self._pop()
            self._step(code)
        raise _refusal(f"more than {MAX_INSTRUCTIONS} instructions")

    def _step(self, code: int) -> None:
        match chr(code):
            case "\x80":  # PROTO
                self._take(1)
            case "\x95":  # FRAME
                self._take(8)
            case "c":  # GLOBAL
                module, name = self._line(), self._line()
                self._push_name(module, name)
            case "\x93":  # STACK_GLOBAL
                name, module = self._pop(), self._pop()
                self._push_name(module, name)
            case "q":  # BINPUT
                self._memo[self._number("<B")] = self._top()
            case "r":  # LONG_BINPUT
                self._memo[self._number("<I")] = self._top()
            case "\x94":  # MEMOIZE
                self._memo[len(self._memo)] = self._top()
            case "h":  # BINGET
                self._stack.append(self._memo[self._number("<B")])
            case "j":  # LONG_BINGET
                self._stack.append(self._memo[self._number("<I")])
            case "K":
                self._stack.append(self._number("<B"))
            case "M":
                self._stack.append(self._number("<H"))
            case "J":
                self._stack.append(self._number("<i"))
            case "\x8a":  # LONG1
                self._stack.append(int.from_bytes(self._counted("<B"), "little", signed=True))
            case "G":
                self._stack.append(self._number(">d"))
            case "N":
                self._stack.append(None)
            case "\x88" | "\x89":
                self._stack.append(code == 0x88)
            case "X":
                self._stack.append(str(self._counted("<I"), "utf-8"))
            case "\x8c":
                self._stack.append(str(self._counted("<B"), "utf-8"))
            case "B":
                self._stack.append(self._counted("<I"))
            case "C":
                self._stack.append(self._counted("<B"))
            case "\x8e":
                self._stack.append(self._counted("<Q"))
            case "(":
                self._marks.append(len(self._stack))
            case ")":
                self._stack.append(())
            case "\x85" | "\x86" | "\x87":
                self._stack.append(tuple(self._pop_many(code - 0x84)))
            case "t":
                self._stack.append(tuple(self._pop_to_mark()))
            case "}":
                self._stack.append({})
            case "]":
                self._stack.append([])
            case "a":
                item = self._pop()
                self._list().append(item)
            case "e":
                items = self._pop_to_mark()
                self._list().extend(items)
            case "s":
                self._set_items(self._pop_many(2))
            case "u":
                self._set_items(self._pop_to_mark())
            case "R":  # REDUCE asks for a call; nothing is called
                arguments, name = self._pop(), self._pop()
                self._stack.append(_rebuild(name, arguments))
            case "b":  # BUILD
                state, target = self._pop(), self._top()
                if not isinstance(target, _Array | _Dtype):
                    raise _refusal("the state of an object that is no array")
                target.set_state(state)
            case other:
                raise _refusal(f"the instruction {other!r}")

    def _take(self, num_bytes: int) -> memoryview:
        if num_bytes > len(self._data) - self._position:
            raise MediaError("the pickle ends early; the file is truncated: copy it again")
        taken = self._data[self._position : self._position + num_bytes]
        self._position += num_bytes
        return taken

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _counted(self, layout: str) -> memoryview:
        return self._take(self._number(layout))

    def _line(self) -> str:
        rest = bytes(self._data[self._position : self._position + 256])
        length = rest.find(b"\n")
        if length < 0:
            raise _refusal("a name without an end")
        return str(self._take(length + 1)[:-1], "utf-8")

    def _push_name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise _refusal("a name that is no text")
        text = f"{module[:80]} {name[:80]}"
        if text not in KNOWN_NAMES:
            raise _refusal(f"a call of {text[:80]!r}, which was not run")
        self._stack.append(_Name(text))

    def _top(self) -> Any:
        return self._stack[-1]

    def _pop(self) -> Any:
        return self._stack.pop()

    def _pop_many(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise _refusal("fewer values than it uses")
        items = self._stack[-count:]
        del self._stack[-count:]
        return items

    def _pop_to_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _list(self) -> list[Any]:
        target = self._top()
        if not isinstance(target, list):
            raise _refusal("an item of something that is no list")
        return target

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(items) % 2:
            raise _refusal("an entry of something that is no dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                raise _refusal("a key that is no text")
            target[key] = value


def _is_order(value: Any) -> bool:
    return isinstance(value, str) and value in BYTE_ORDERS


def _rebuild(name: Any, arguments: Any) -> Any:
    if not isinstance(name, _Name) or not isinstance(arguments, tuple):
        raise _refusal("a call of something that has no name")
    first = arguments[0] if arguments else None
    if name.text in ARRAY_REBUILDERS and isinstance(first, _Name) and first.text == ARRAY_TYPE:
        return _Array()
    if name.text == DTYPE_TYPE and isinstance(first, str) and first in DTYPE_CODES:
        return _Dtype(first)
    if name.text in SCALAR_REBUILDERS:
        return None  # a number beside the columns, which is not needed
    raise _refusal(f"a call of {name.text!r} with arguments that no plain array has")
