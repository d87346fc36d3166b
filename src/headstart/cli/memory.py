"""`headstart memory`: what an engine remembers from the start."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.errors import report_errors

app = typer.Typer(help="What an engine remembers from the start.", no_args_is_help=True)


@app.callback()
def memory() -> None:
    """What an engine remembers from the start."""


@app.command("import")
@report_errors
def import_log(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="Logged answers, a JSON object a line."),
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
    """Make a memory log of logged answers, for an engine to quote from its first question on.

    A row holds question and target_tokens (or target_text), and may hold tenant. Give the file to
    an engine as memory_log.
    """
    from headstart.bench.log import model_tokens, read_log
    from headstart.speculation.memory_log import RememberedAnswer, write_memory_log

    log = read_log(file, model_tokens(tokenizer) if tokenizer else _refuse_text)
    written = write_memory_log(
        out,
        (
            RememberedAnswer(
                row.request.stream.tenant if tenant is None else tenant,
                row.request.question,
                row.tokens,
            )
            for row in log
        ),
    )
    tenants = [answer.tenant for answer in written]
    for name in dict.fromkeys(tenants):
        typer.echo(f"{tenants.count(name)} answers of {repr(name) if name else 'no tenant'}")
    if len(written) < len(log):
        typer.echo(f"{len(log) - len(written)} older answers are left out: memory keeps no more")
    typer.echo(f"{out}: {out.stat().st_size} bytes")


def _refuse_text(text: str) -> list[int]:
    raise ValueError("the row has text and no tokens: give the target's directory as --tokenizer")
