"""A clock that a play turns, in place of every clock that our modules read.

Time goes on where the play says so and nowhere else. So it does not matter how often code looks at
a clock, only what it makes of the time that has passed.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

READINGS = {"monotonic", "perf_counter", "time"}


class Clock:
    """What it shows, in seconds."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


CLOCK = Clock()
_TURNED = SimpleNamespace(**{**vars(time), **dict.fromkeys(READINGS, CLOCK)})
_REAL = [getattr(time, name) for name in READINGS]


@contextmanager
def turned() -> Iterator[list[str]]:
    """Have all that is imported of ours read `CLOCK`, from 1,000 s on; yields who does."""
    ours = [module for name, module in sys.modules.items() if name.startswith("headstart")]
    places = []
    with pytest.MonkeyPatch.context() as patch:
        for module in ours:
            for name, value in list(vars(module).items()):
                if value is time or _turned(value) is CLOCK:
                    patch.setattr(module, name, _TURNED if value is time else CLOCK)
                    places.append(f"{module.__name__}.{name}")
            for function in _functions(module):
                # A clock that is a default was looked up when the function was made.
                defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
                if any(_turned(value) is CLOCK for value in (*defaults, *named.values())):
                    patch.setattr(function, "__defaults__", tuple(map(_turned, defaults)))
                    patch.setattr(
                        function, "__kwdefaults__", {n: _turned(v) for n, v in named.items()}
                    )
                    places.append(f"{module.__name__}.{function.__qualname__}")
        CLOCK.now_s = 1000.0
        yield sorted(places)


def _turned(value: Any) -> Any:
    return CLOCK if any(value is real for real in _REAL) else value


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Those that it defines, methods among them."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).values() if isinstance(value, type) else (value,)
        yield from (member for member in members if isinstance(member, FunctionType))
