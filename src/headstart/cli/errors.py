"""Prints errors at a terminal: the message, exit code 1, no traceback."""

import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer

from headstart.cli.terminal import cause, terminal
from headstart.errors import EngineStartError, HeadstartError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def report_errors(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a command to print a `HeadstartError`; other errors keep their traceback."""

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
