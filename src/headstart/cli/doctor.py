"""`headstart doctor`: prints what is installed, what is missing, and how to install it."""

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.terminal import report_errors
from headstart.doctor.findings import Health, inspect

_MARKS = {Health.OK: "[green]ok[/]", Health.OPTIONAL: "[yellow]--[/]", Health.BROKEN: "[red]no[/]"}


@report_errors
def doctor() -> None:
    """Check the installation, and say what mends it.

    Exits with 1 if it cannot answer questions.
    """
    console = Console()
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
