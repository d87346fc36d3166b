"""Commands that other packages add to `headstart`: typer apps, loaded when they are called."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from headstart.cli.errors import report_errors
from headstart.errors import HeadstartError

ENTRY_POINTS = "headstart.commands"
"""The entry point group under which a package registers its app."""
_INSTALL_LAB = "in a checkout of headstart: pip install ./lab"
HOW_TO_INSTALL = {"demo": _INSTALL_LAB, "lab": _INSTALL_LAB}
"""Commands that headstart names in its help also where their package is not installed."""
START = "Start here"
"""What the help calls the commands for a first look."""


class PluginGroup(TyperGroup):
    """headstart's own commands, and those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands: for a first look, headstart's own, and others'."""
        others = sorted(entry_points(group=ENTRY_POINTS).names - HOW_TO_INSTALL.keys())
        return [*HOW_TO_INSTALL, *super().list_commands(ctx), *others]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if plugins := entry_points(group=ENTRY_POINTS, name=cmd_name):
            command = _loaded(next(iter(plugins)))
        elif cmd_name in HOW_TO_INSTALL:
            how = HOW_TO_INSTALL[cmd_name]
            command = _refusing(f"headstart {cmd_name} is not installed: {how}")
        else:
            return None
        command.name = cmd_name
        if cmd_name in HOW_TO_INSTALL:
            command.rich_help_panel = START
        return command


def _loaded(plugin: EntryPoint) -> Any:
    try:
        return get_command(plugin.load())
    except (ImportError, AttributeError) as error:
        # A package of another version must not take headstart's own commands down.
        return _refusing(
            f"{plugin.value} does not load ({error}): install the same version as headstart's"
        )


def _refusing(message: str) -> Any:
    """A command that fails with ``message``, whatever its arguments are."""
    app = typer.Typer(add_completion=False)
    takes_all = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(help=message, add_help_option=False, context_settings=takes_all)
    @report_errors
    def refuse() -> None:
        raise HeadstartError(message)

    return get_command(app)
