"""`headstart memory`: what an engine remembers from the start, and what a server remembers now."""

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.errors import report_errors

if TYPE_CHECKING:
    from headstart.speculation.memory_log import RememberedAnswer

app = typer.Typer(help="What engines remember, and what they forget.", no_args_is_help=True)

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
    from headstart.client.memory_client import MAX_LISTED, MemoryClient

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
    from headstart.client.memory_client import MemoryClient

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
    from headstart.client.memory_client import MemoryClient

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
    from headstart.client.memory_client import MemoryClient

    if (stream is None) != every:
        raise typer.BadParameter("name a stream, or say --all")
    for each in url or [HERE]:
        client = MemoryClient(each, key)
        if stream is None:
            client.forget_all()
        else:
            client.forget(stream)
        typer.echo(f"{each}: forgotten")


@app.command("import")
@report_errors
def import_log(
    answers: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="Logged answers, a JSON object a line; or a folder of headstart collect.",
        ),
    ],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The memory log to write.")],
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="The target's directory, for logs of text."
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose answers they are; by default as each row says."),
    ] = None,
) -> None:
    """Make a memory log of logged or collected answers, for an engine to quote from its first
    question on.

    A row of a log holds question and target_tokens (or target_text), and may hold tenant. Give the
    file to an engine as memory_log.
    """
    from headstart.speculation.memory_log import write_memory_log

    log = _collected(answers) if answers.is_dir() else _logged(answers, tokenizer)
    if tenant is not None:
        log = [replace(answer, tenant=tenant) for answer in log]
    written = write_memory_log(out, log)
    tenants = [answer.tenant for answer in written]
    for name in dict.fromkeys(tenants):
        typer.echo(f"{tenants.count(name)} answers of {repr(name) if name else 'no tenant'}")
    if len(written) < len(log):
        typer.echo(f"{len(log) - len(written)} older answers are left out: memory keeps no more")
    typer.echo(f"{out}: {out.stat().st_size} bytes")


def _logged(file: Path, tokenizer: Path | None) -> "list[RememberedAnswer]":
    from headstart.bench.log import model_tokens, read_log
    from headstart.speculation.memory_log import RememberedAnswer

    rows = read_log(file, model_tokens(tokenizer) if tokenizer else _refuse_text)
    return [
        RememberedAnswer(row.request.stream.tenant, row.request.question, row.tokens)
        for row in rows
    ]


def _collected(folder: Path) -> "list[RememberedAnswer]":
    from headstart.collect.record_table import require_pyarrow

    require_pyarrow()
    from headstart.collect.learnable import learnable_answers
    from headstart.speculation.memory_log import RememberedAnswer

    return [
        RememberedAnswer("", record.question, record.answer_ids)
        for record in learnable_answers(folder)
    ]


def _refuse_text(text: str) -> list[int]:
    raise ValueError("the row has text and no tokens: give the target's directory as --tokenizer")
