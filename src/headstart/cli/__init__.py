"""The `headstart` command: words on a terminal over the layers below."""

import os
import signal
import sys
from typing import Annotated

import typer

from headstart.cli import (
    ask,
    bench,
    collect,
    doctor,
    evaluate,
    events,
    gpu_report,
    memory,
    plan,
    replay,
    serve,
    train,
    watch,
)
from headstart.cli.plugins import START, PluginGroup
from headstart.cli.terminal import terminal
from headstart.cli.version import print_version
from headstart.engine.interrupts import ENDED

LIVE, MEASURE, LEARN = "Cameras and clips", "Measure and plan", "Train"

app = typer.Typer(
    name="headstart",
    cls=PluginGroup,
    help="Ask a video language model about a camera's pictures. The same words, sooner.",
    pretty_exceptions_enable=False,
)
# The order of the help.
app.command("doctor", rich_help_panel=START)(doctor.doctor)
app.command("ask", rich_help_panel=LIVE)(ask.ask)
app.command("watch", rich_help_panel=LIVE)(watch.watch)
app.command("serve", rich_help_panel=LIVE)(serve.serve)
app.add_typer(events.app, name="events", rich_help_panel=LIVE)
app.add_typer(memory.app, name="memory", rich_help_panel=LIVE)
app.add_typer(bench.app, name="bench", rich_help_panel=MEASURE)
app.command("replay", rich_help_panel=MEASURE)(replay.replay)
app.command("plan", rich_help_panel=MEASURE)(plan.plan)
app.command("gpu-report", rich_help_panel=MEASURE)(gpu_report.gpu_report)
app.command("collect", rich_help_panel=LEARN)(collect.collect)
app.add_typer(train.app, name="train", rich_help_panel=LEARN)
app.command("eval", rich_help_panel=LEARN)(evaluate.evaluate)


@app.callback(invoke_without_command=True)
def headstart(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version, and exit."
        ),
    ] = False,
) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line."""
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
