"""The command line, as its own parser has it."""

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from headstart.cli import app
from headstart.cli.plugins import HELP_ALL
from headstart.cli.settings import settings_of
from reference.markdown import block, code, document, prose, table

_OPENING = """# Commands

What `--help-all` prints, for every command; `--help` leaves out what few people set.
`headstart lab` and `headstart demo` come with the package `headstart-lab`. An option that takes
`NAME=VALUE` or is called repeatable may be given several times. A *setting* is given as
`--set NAME=VALUE`."""


def page() -> str:
    """The page of all commands."""
    return document(_OPENING, *map(_section, every_command()))


def every_command(context: Any = None) -> Iterator[Any]:
    """The context of each command that is not hidden, a group before what is in it."""
    if context is None:
        context = typer.Context(get_command(app), info_name="headstart")
    yield context
    if isinstance(context.command, TyperGroup):
        for name in context.command.list_commands(context):
            inner = context.command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from every_command(typer.Context(inner, parent=context, info_name=name))


def _section(context: Any) -> str:
    command = context.command
    options = [
        (code(names), prose(said))
        for each in command.params
        if HELP_ALL not in each.opts
        for names, said in filter(None, [_shown(each).get_help_record(context)])
    ]
    settings = settings_of(command.callback)
    inner: list[tuple[str, str]] = []
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            path = f"{context.command_path} {name}"
            first = inspect.cleandoc((found and found.help) or "").partition("\n\n")[0]
            inner.append((f"[`{path}`](#{path.replace(' ', '-')})", prose(first)))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    return document(
        f"## {context.command_path}",
        inspect.cleandoc(command.help or ""),
        block(usage),
        table(("command", ""), inner),
        table(("option", ""), options),
        table(("setting", ""), ((code(name), prose(said)) for name, said in settings.rows()))
        if settings
        else "",
    )


def _shown(parameter: Any) -> Any:
    whole = copy.copy(parameter)
    whole.hidden = False
    return whole
