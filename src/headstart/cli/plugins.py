"""The commands of `headstart`: its own, those that other packages add, and the help of each."""

import copy
import inspect
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from typer.core import TyperGroup
from typer.main import get_command

from headstart.cli.settings import settings_of
from headstart.cli.terminal import report_errors
from headstart.errors import HeadstartError

ENTRY_POINTS = "headstart.commands"
"""The entry point group under which a package registers its commands."""
HELP_ALL = "--help-all"
_LAB = "in a checkout of headstart: pip install ./lab"
_SERVER, _EVENTS, _RESEARCH = (
    f"pip install 'headstart[{extra}]'" for extra in ("server", "events", "research")
)
PANELS: dict[str, dict[str, str]] = {
    "What most people need": {
        **{"doctor": "", "demo": _LAB, "ask": "", "watch": "", "serve": _SERVER},
        "bench": _RESEARCH,
    },
    "Recordings, memories, models to try with": {"events": _EVENTS, "memory": _SERVER, "lab": _LAB},
    "Measure and plan": dict.fromkeys(("plan", "replay", "gpu-report"), _RESEARCH),
    "Learned drafters": dict.fromkeys(("collect", "train", "eval"), _RESEARCH),
}
"""The commands in the order of the help, each with what installs it where it is not there."""
_INSTALLS = {name: how for names in PANELS.values() for name, how in names.items()}


class PluginGroup(TyperGroup):
    """headstart's own commands, and those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands: those of the help's panels, then others'."""
        return [*_INSTALLS, *sorted(entry_points(group=ENTRY_POINTS).names - _INSTALLS.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is None and (plugins := entry_points(group=ENTRY_POINTS, name=cmd_name)):
            command = _loaded(next(iter(plugins)))
        elif command is None and cmd_name in _INSTALLS:
            command = _refusing(f"headstart {cmd_name} is not installed: {_INSTALLS[cmd_name]}")
        if command is not None:
            command.name = cmd_name
            panels = (panel for panel, names in PANELS.items() if cmd_name in names)
            command.rich_help_panel = next(panels, None)
            _shown_well(command)
        return command


def _loaded(plugin: EntryPoint) -> Any:
    try:
        found = plugin.load()
        return get_command(found) if isinstance(found, typer.Typer) else _made(found)
    except (ImportError, AttributeError) as error:
        # A package of another version must not take headstart's own commands down.
        return _refusing(
            f"{plugin.value} does not load ({error}): install the same version as headstart's"
        )


def _refusing(message: str) -> Any:
    """A command that fails with ``message``, whatever its arguments are."""
    takes_all = {"allow_extra_args": True, "ignore_unknown_options": True}

    @report_errors
    def refuse() -> None:
        raise HeadstartError(message)

    return _made(refuse, help=message, add_help_option=False, context_settings=takes_all)


def _made(function: Callable[..., object], **settings: Any) -> Any:
    """The command that typer makes of a function."""
    app = typer.Typer(add_completion=False)
    app.command(**settings)(function)
    return get_command(app)


def _shown_well(command: Any) -> None:
    """Have a command, and those below it, show what most people need, and `--help-all` the rest."""
    for inner in getattr(command, "commands", {}).values():
        _shown_well(inner)
    if command.help:  # typer would keep the ends of a docstring's lines
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    if not any(HELP_ALL in each.opts for each in command.params):
        whole = copy.copy(_help_all())
        whole.hidden = not any(each.hidden for each in command.params)
        command.params.append(whole)


@cache
def _help_all() -> Any:
    """The flag, made as typer makes every option."""

    def command(
        help_all: bool = typer.Option(
            False,
            HELP_ALL,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show every option and setting, and exit.",
        ),
    ) -> None: ...

    return _made(command).params[0]


def _show_all(context: typer.Context, is_asked: bool) -> None:
    if not is_asked:
        return
    whole: Any = copy.copy(context.command)
    whole.params = [copy.copy(each) for each in whole.params if HELP_ALL not in each.opts]
    for each in whole.params:
        each.hidden = False
    typer.echo(whole.get_help(context), nl=False)
    if (settings := settings_of(whole.callback)) is not None:
        table = Table.grid(padding=(0, 2))
        for name, meaning in settings.rows():
            table.add_row(name, meaning)
        panel = Panel(table, title="--set NAME=VALUE", title_align="left", border_style="dim")
        Console().print(panel, markup=False, highlight=False)
    raise typer.Exit
