"""`headstart doctor`: prints what is installed, what is missing, and how to install it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.errors import report_errors
from headstart.engine.installation import VLLM_VERSION, Health, inspect

_MARKS = {Health.OK: "[green]ok[/]", Health.OPTIONAL: "[yellow]--[/]", Health.BROKEN: "[red]no[/]"}


@report_errors
def doctor(
    seams: Annotated[
        bool,
        typer.Option(help="Name the parts of vLLM that headstart touches and that have changed."),
    ] = False,
    vllm: Annotated[
        Path | None,
        typer.Option(help="With --seams: another vLLM's folder, which is read and not imported."),
    ] = None,
) -> None:
    """Check the installation; exit with 1 if it cannot answer questions."""
    console = Console()
    if seams or vllm is not None:
        _compare(console, vllm)
        return
    findings = inspect()
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        table.add_row(_MARKS[finding.health], finding.part, finding.detail)
    console.print(table)
    for finding in findings:
        if finding.mend:
            console.print(f"\nto mend [bold]{finding.part}[/]:")
            console.print(finding.mend, markup=False, highlight=False, style="cyan", soft_wrap=True)
    if any(finding.health is Health.BROKEN for finding in findings):
        raise typer.Exit(1)
    console.print("\n[green]headstart can answer here.[/]")


def _compare(console: Console, folder: Path | None) -> None:
    """Print which seams differ; exit with 1 if any does."""
    from headstart.compatibility.seams import Seams, installed_vllm
    from headstart.compatibility.source_tree import SourceTree

    tree, seams = SourceTree(folder or installed_vllm()), Seams.of(VLLM_VERSION)
    differences = seams.differences(tree)
    for difference in differences:
        word = "[red]gone   [/]" if difference.is_gone else "[yellow]changed[/]"
        # A line each, however long: what reads it may be another program.
        console.print(f"{word} {difference.name}  {' '.join(difference.users)}", soft_wrap=True)
    num_gone = sum(difference.is_gone for difference in differences)
    num_same = len(seams.by_name) - len(differences)
    console.print(
        f"of {len(seams.by_name)} seams of vLLM {seams.version} in {tree.root}: {num_same} the"
        f" same, {len(differences) - num_gone} changed, {num_gone} gone",
        soft_wrap=True,
    )
    if differences:
        raise typer.Exit(1)
