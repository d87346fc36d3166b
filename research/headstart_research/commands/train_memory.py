"""`headstart train memory`: answers for an engine to quote from its first question on."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.terminal import report_errors

if TYPE_CHECKING:
    from headstart.drafters.memory_log import RememberedAnswer


@report_errors
def memory(
    answers: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="Logged answers, a JSON object a line; or a folder of headstart collect.",
        ),
    ],
    output: Annotated[Path, typer.Argument(dir_okay=False, help="The memory log to write.")],
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
    """Make a memory log of answers, for an engine to quote from its first question on.

    A row of a log holds question and target_tokens (or target_text), and may hold tenant. Give the
    file to an engine as memory_log.
    """
    from headstart.drafters.memory_log import write_memory_log

    log = _collected(answers) if answers.is_dir() else _logged(answers, tokenizer)
    if tenant is not None:
        log = [replace(answer, tenant=tenant) for answer in log]
    written = write_memory_log(output, log)
    tenants = [answer.tenant for answer in written]
    for name in dict.fromkeys(tenants):
        typer.echo(f"{tenants.count(name)} answers of {repr(name) if name else 'no tenant'}")
    if len(written) < len(log):
        typer.echo(f"{len(log) - len(written)} older answers are left out: memory keeps no more")
    typer.echo(f"{output}: {output.stat().st_size} bytes")


def _logged(file: Path, tokenizer: Path | None) -> "list[RememberedAnswer]":
    from headstart.drafters.memory_log import RememberedAnswer
    from headstart_research.bench.log import model_tokens, read_log

    rows = read_log(file, model_tokens(tokenizer) if tokenizer else _refuse_text)
    return [
        RememberedAnswer(row.request.stream.tenant, row.request.question, row.tokens)
        for row in rows
    ]


def _collected(folder: Path) -> "list[RememberedAnswer]":
    from headstart_research.collect.record_table import require_pyarrow

    require_pyarrow()
    from headstart.drafters.memory_log import RememberedAnswer
    from headstart_research.collect.learnable import learnable_answers

    return [
        RememberedAnswer("", record.question, record.answer_ids)
        for record in learnable_answers(folder)
    ]


def _refuse_text(text: str) -> list[int]:
    raise ValueError("the row has text and no tokens: give the target's directory as --tokenizer")
