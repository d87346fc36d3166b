"""`headstart memory`: what a server remembers of your streams."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.terminal import report_errors

if TYPE_CHECKING:
    from headstart_client.memory_client import MemoryClient

app = typer.Typer(no_args_is_help=True, add_completion=False)

Url = Annotated[str, typer.Option(help="The server.")]
Stream = Annotated[str, typer.Argument(help="The stream's name.")]
HERE = "http://127.0.0.1:8000"
KEY = "HEADSTART_KEY"
"""The variable with a tenant's key: other users see a command's words, and not its environment."""


@app.callback()
def memory() -> None:
    """See, keep, restore and forget what a server remembers.

    Where a server asks for keys, HEADSTART_KEY holds a key of the tenant's.
    """


@app.command("show")
@report_errors
def show(url: Url = HERE) -> None:
    """Show what a server remembers of your streams."""
    said = _client(url).streams()
    for row in said["data"]:
        until = datetime.fromtimestamp(row["newest_s"], UTC) if "newest_s" in row else None
        typer.echo(
            f"{row['stream']}: {row['answers']} answers, {row['bytes']} bytes,"
            f" {row['stored_bytes']} stored"
            + ("" if until is None else f", the last {until:%Y-%m-%d %H:%M:%S} UTC")
        )
    typer.echo(f"{len(said['data'])} streams; answers are kept for {said['keep_days']:g} days")


def _client(url: str) -> "MemoryClient":
    from headstart_client.memory_client import MemoryClient

    return MemoryClient(url, os.environ.get(KEY, ""))


@app.command("export")
@report_errors
def export(
    stream: Stream,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="The file to write.")],
    url: Url = HERE,
) -> None:
    """Write what a server remembers of a stream to a file, sealed by the server."""
    sealed = _client(url).export(stream)
    file.write_bytes(sealed)
    typer.echo(f"{file}: {len(sealed)} bytes")


@app.command("restore")
@report_errors
def restore(
    stream: Stream,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="What an export has written.")
    ],
    url: Url = HERE,
) -> None:
    """Have a server remember an exported stream, under the same name or another.

    Under another name, a new camera begins with what another of yours has seen.
    """
    said = _client(url).restore(stream, file.read_bytes())
    typer.echo(f"{said['stream']} remembers {said['answers']} answers of {said['from']}")


@app.command("forget")
@report_errors
def forget(
    stream: Annotated[str | None, typer.Argument(help="The stream's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of your streams.")] = False,
    url: Annotated[list[str] | None, typer.Option(help="A server; repeatable.")] = None,
) -> None:
    """Have servers forget a stream, or all of yours: the engine, and the store behind it."""
    if (stream is None) != every:
        raise typer.BadParameter("name a stream, or say --all")
    for each in url or [HERE]:
        client = _client(each)
        if stream is None:
            client.forget_all()
        else:
            client.forget(stream)
        typer.echo(f"{each}: forgotten")
