"""How an error reaches a person: one message, no traceback, exit code 1."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

from headstart.errors import HeadstartError

P = ParamSpec("P")
R = TypeVar("R")


def report_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print our own errors as a message; anything else is a bug and keeps its traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HeadstartError as error:
            Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False)
            raise typer.Exit(1) from error

    return wrapped
