"""The `headstart` command: words on a terminal over the layers below."""

import signal

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
from headstart.cli.plugins import PluginGroup

app = typer.Typer(
    name="headstart",
    cls=PluginGroup,
    help="Ask a video language model about a camera's pictures. The same words, sooner.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("ask")(ask.ask)
app.command("collect")(collect.collect)
app.command("doctor")(doctor.doctor)
app.command("eval")(evaluate.evaluate)
app.command("gpu-report")(gpu_report.gpu_report)
app.command("plan")(plan.plan)
app.command("replay")(replay.replay)
app.command("serve")(serve.serve)
app.command("watch")(watch.watch)
app.add_typer(bench.app, name="bench")
app.add_typer(events.app, name="events")
app.add_typer(memory.app, name="memory")
app.add_typer(train.app, name="train")


def main() -> None:
    """Run the command line."""
    # A command that is told to end closes its engines, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
