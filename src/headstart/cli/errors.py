"""Prints errors at a terminal: the message, exit code 1, no traceback."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer

from headstart.errors import HeadstartError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def report_errors(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a command to print a `HeadstartError`; other errors keep their traceback."""

    @wraps(command)
    def reporting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except HeadstartError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(code=1) from error

    return reporting
