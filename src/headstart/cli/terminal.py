"""A command's terminal, kept for the command's own words; its errors are some of them.

vLLM, Triton, transformers and the end of the interpreter print dozens of lines that a person at a
terminal can do nothing with, in this process and in others, from Python and from C. `divert` leads
them all into a file, whose path is said. Where standard error is no terminal, as under systemd or
in a container, nothing is diverted: operators collect what is printed.
"""

import logging
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TextIO, TypeVar

import typer
from rich.file_proxy import FileProxy

from headstart.errors import EngineStartError, HeadstartError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
NUM_LINES = 6
_CAUSE = re.compile(r"^\S*(Error|Exception|Exit)\b: |\b(ERROR|CRITICAL)\b")
_PLACE = re.compile(r"^\s|^Traceback |^File ")
_PREFIX = re.compile(r"^(\(.+? pid=\d+\) )?([A-Z]+ \d\d-\d\d \S+ (\[\S+\] ?)?)?")
"""What vLLM writes before each line of a process: which one it is, level, time, place."""


@dataclass(frozen=True)
class Terminal:
    """Where a command's own words go: its output, and what is said beside it."""

    out: TextIO
    err: TextIO
    log: Path | None = None
    """Where everything else goes; where that was not diverted, none."""

    def say(self, words: str) -> None:
        print(words, file=self.err, flush=True)


_diverted: Terminal | None = None
_is_verbose = False


class _OwnWarnings(logging.StreamHandler[TextIO]):
    """Shows what this package warns of, a camera that is lost for example."""

    def __init__(self) -> None:
        logging.Handler.__init__(self, logging.WARNING)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The terminal; while something is drawn on it, rich's way beside that."""
        drawn: TextIO = sys.stderr
        return drawn if isinstance(drawn, FileProxy) else terminal().err


def terminal() -> Terminal:
    return Terminal(sys.stdout, sys.stderr) if _diverted is None else _diverted


def is_verbose() -> bool:
    """Whether vLLM's own messages are to be seen: ``headstart --verbose COMMAND``."""
    return _is_verbose


def set_verbose(is_wanted: bool) -> None:
    global _is_verbose
    _is_verbose = is_wanted


def quieten() -> None:
    """Leave the terminal to the answer. In the environment, so that engine processes hear it."""
    if _is_verbose:
        return
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    warnings.simplefilter("ignore")


def divert() -> Terminal:
    """From now on and to the end of the process, all but `terminal` goes to a file.

    Not where standard error is no terminal, nor with ``--verbose``. The file stays: an error may be
    understood later.
    """
    global _diverted
    if _diverted is not None or _is_verbose or not sys.stderr.isatty():
        return terminal()
    file, name = tempfile.mkstemp(prefix="headstart-", suffix=".log")
    sys.stdout.flush()
    sys.stderr.flush()
    out, err = (_kept(stream) for stream in (sys.stdout, sys.stderr))
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    os.close(file)
    _diverted = Terminal(out, err, Path(name))
    logging.getLogger("headstart").addHandler(_OwnWarnings())
    _diverted.say(f"vLLM's messages go to {name}")
    return _diverted


def _kept(stream: TextIO) -> TextIO:
    """A stream of its own to where one leads now; processes that are started do not have it."""
    kept = os.dup(stream.fileno())
    return os.fdopen(kept, "w", buffering=1, encoding=stream.encoding, errors=stream.errors)


def report_errors(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a command to print a `HeadstartError` and exit with 1; others keep their traceback."""

    @wraps(command)
    def reporting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except HeadstartError as error:
            shown = terminal()
            shown.say(f"error: {error}")
            if shown.log is not None and isinstance(error, EngineStartError):
                shown.say(f"What vLLM said last, of {shown.log}:")
                for line in cause(shown.log):
                    shown.say(f"  {line}")
            raise typer.Exit(code=1) from error
        except Exception:
            if terminal().log is None:
                raise
            traceback.print_exc(file=terminal().err)  # Python's own would be diverted
            raise typer.Exit(code=1) from None

    return reporting


def cause(log: Path) -> list[str]:
    """The last lines of a log that say why something failed; the very last, where none does."""
    lines = log.read_text(errors="replace").splitlines()
    causes = (_PREFIX.sub("", line).rstrip() for line in lines if _CAUSE.search(line))
    said = [line for line in causes if line and not _PLACE.match(line)]
    return list(dict.fromkeys(said or filter(str.strip, lines)))[-NUM_LINES:]
