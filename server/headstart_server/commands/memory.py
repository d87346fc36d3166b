"""`headstart memory`: what a server remembers of your streams."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.errors import report_errors

app = typer.Typer(
    help="What engines remember, and what they forget.",
    no_args_is_help=True,
    add_completion=False,
)

Url = Annotated[str, typer.Option(help="The server.")]
Key = Annotated[
    str, typer.Option(envvar="HEADSTART_KEY", show_envvar=True, help="A key of the tenant.")
]
Stream = Annotated[str, typer.Argument(help="The stream's name.")]
HERE = "http://127.0.0.1:8000"


@app.callback()
def memory() -> None:
    """What engines remember, and what they forget."""


@app.command("show")
@report_errors
def show(
    url: Url = HERE,
    key: Key = "",
    limit: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Show no more than so many, by name.")
    ] = None,
    cursor: Annotated[
        str | None, typer.Option(help="Show those after this one; what a shown page ends with.")
    ] = None,
) -> None:
    """Show what a server remembers of your streams."""
    from headstart_client.memory_client import MAX_LISTED, MemoryClient

    client, num_shown = MemoryClient(url, key), 0
    while True:
        said = client.page(cursor, limit or MAX_LISTED)
        _show_rows(said["data"])
        num_shown += len(said["data"])
        cursor = said["cursor"]
        if cursor is None or limit is not None:
            break
    if cursor is not None:
        typer.echo(f"there are more: --cursor {shlex.quote(cursor)}")
    typer.echo(f"{num_shown} streams; answers are kept for {said['keep_days']:g} days")


def _show_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        until = datetime.fromtimestamp(row["newest_s"], UTC) if "newest_s" in row else None
        typer.echo(
            f"{row['stream']}: {row['answers']} answers, {row['bytes']} bytes,"
            f" {row['stored_bytes']} stored"
            + ("" if until is None else f", the last {until:%Y-%m-%d %H:%M:%S} UTC")
        )


@app.command("export")
@report_errors
def export(
    stream: Stream,
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write.")],
    url: Url = HERE,
    key: Key = "",
) -> None:
    """Write what a server remembers of a stream to a file, sealed by the server."""
    from headstart_client.memory_client import MemoryClient

    sealed = MemoryClient(url, key).export(stream)
    out.write_bytes(sealed)
    typer.echo(f"{out}: {len(sealed)} bytes")


@app.command("restore")
@report_errors
def restore(
    stream: Stream,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="What an export has written.")
    ],
    url: Url = HERE,
    key: Key = "",
) -> None:
    """Have a server remember an exported stream, under the same name or another.

    Under another name, a new camera begins with what another of yours has seen.
    """
    from headstart_client.memory_client import MemoryClient

    said = MemoryClient(url, key).restore(stream, file.read_bytes())
    typer.echo(f"{said['stream']} remembers {said['answers']} answers of {said['from']}")


@app.command("forget")
@report_errors
def forget(
    stream: Annotated[str | None, typer.Argument(help="The stream's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of your streams.")] = False,
    url: Annotated[list[str] | None, typer.Option(help="A server; repeatable.")] = None,
    key: Key = "",
) -> None:
    """Have servers forget a stream, or all of yours: the engine, and the store behind it."""
    from headstart_client.memory_client import MemoryClient

    if (stream is None) != every:
        raise typer.BadParameter("name a stream, or say --all")
    for each in url or [HERE]:
        client = MemoryClient(each, key)
        if stream is None:
            client.forget_all()
        else:
            client.forget(stream)
        typer.echo(f"{each}: forgotten")
