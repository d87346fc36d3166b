"""Commands that other packages add to `headstart`, loaded when they are called."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from headstart.cli.errors import report_errors
from headstart.errors import HeadstartError

ENTRY_POINTS = "headstart.commands"
"""The entry point group under which a package registers its commands."""
PANELS = {
    "Start here": ("demo", "lab", "doctor"),
    "Cameras and clips": ("ask", "watch", "serve", "events", "memory"),
    "Measure and plan": ("bench", "replay", "plan", "gpu-report"),
    "Train": ("collect", "train", "eval"),
}
"""The order of the help. Commands of packages that are not installed are named too."""
_INSTALL_LAB = "in a checkout of headstart: pip install ./lab"
_INSTALL_SERVER = "pip install 'headstart[server]'"
_INSTALL_RESEARCH = "pip install 'headstart[research]'"
HOW_TO_INSTALL = {
    "demo": _INSTALL_LAB,
    "lab": _INSTALL_LAB,
    "events": "pip install 'headstart[events]'",
    "serve": _INSTALL_SERVER,
    "memory": _INSTALL_SERVER,
    **dict.fromkeys(
        ("bench", "replay", "plan", "gpu-report", "collect", "train", "eval"), _INSTALL_RESEARCH
    ),
}


class PluginGroup(TyperGroup):
    """headstart's own commands, and those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands: those of the help's panels, then others'."""
        known = [name for names in PANELS.values() for name in names]
        return [*known, *sorted(entry_points(group=ENTRY_POINTS).names - set(known))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        command: Any = super().get_command(ctx, cmd_name)
        if command is None and (plugins := entry_points(group=ENTRY_POINTS, name=cmd_name)):
            command = _loaded(next(iter(plugins)))
        elif command is None and cmd_name in HOW_TO_INSTALL:
            how = HOW_TO_INSTALL[cmd_name]
            command = _refusing(f"headstart {cmd_name} is not installed: {how}")
        if command is not None:
            command.name = cmd_name
            command.rich_help_panel = next(
                (panel for panel, names in PANELS.items() if cmd_name in names), None
            )
        return command


def _loaded(plugin: EntryPoint) -> Any:
    """An app of several commands, or a function that is one."""
    try:
        found = plugin.load()
        if isinstance(found, typer.Typer):
            return get_command(found)
        app = typer.Typer(add_completion=False)
        app.command()(found)
        return get_command(app)
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
