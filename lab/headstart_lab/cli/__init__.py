"""`headstart lab`: small models and scenes, made on this machine; nothing is downloaded."""

import typer

from headstart_lab.cli.demo import demo
from headstart_lab.cli.drive import drive
from headstart_lab.cli.texts import texts
from headstart_lab.cli.tiny import tiny
from headstart_lab.cli.training import data, train

app = typer.Typer(
    help="Small models and scenes to try headstart with.",
    no_args_is_help=True,
    add_completion=False,
)
for command in (tiny, data, train, demo, drive, texts):
    app.command()(command)
