"""`headstart eval`: measures what drafters are worth on held-out answers."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from headstart.cli.terminal import report_errors
from headstart_research.commands.options import Also, named_drafters
from headstart_research.commands.tables import figures_table

if TYPE_CHECKING:
    from headstart_research.evaluation.evaluation import EvaluationResult

HEADINGS = (
    "tokens\na pass",
    "95% over\nanswers",
    "95% over\nstreams",
    "first\nblock",
    "new\nscenes",
    "first\nclips",
    "ms a draft\np50, p95",
    "end to\nend",
)


@report_errors
def evaluate(
    records: Annotated[
        Path,
        typer.Argument(
            exists=True, file_okay=False, help="A folder of headstart collect --held-out."
        ),
    ],
    learn_from: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Records of other drives, whose answers memory knows from the start.",
        ),
    ] = None,
    also: Also = None,
    bench: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A bench.json of this target and drafters: its ratios are shown too.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="A file for the result.")] = None,
    picture: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A file for a picture of it, SVG.")
    ] = None,
) -> None:
    """Measure drafters on held-out answers, without the target.

    Prints tables, and one line of JSON last.
    """
    from headstart_research.bench.environment import environment
    from headstart_research.bench.result import BenchResult
    from headstart_research.collect.record_table import require_pyarrow

    require_pyarrow()
    from headstart_research.evaluation.asked_clips import AskedStreams
    from headstart_research.evaluation.contenders import bridges, load_bridge, memories, registered
    from headstart_research.evaluation.evaluation import Evaluation
    from headstart_research.evaluation.known_answers import KnownAnswers
    from headstart_research.evaluation.picture import drawn
    from headstart_research.evaluation.workload import workloads

    names, directories = named_drafters(also)
    console = Console(stderr=True)
    with console.status("reading records"):
        held_out = AskedStreams.read(records)
        known = KnownAnswers.read(learn_from, held_out) if learn_from else KnownAnswers()
    evaluation = Evaluation(
        workloads(held_out),
        [*memories(known), *registered(names, known)],
        bridges(directories, load_bridge, known, held_out.manifest.target),
        held_out.manifest.features,
        BenchResult.read(bench) if bench is not None else None,
    )
    with _bar(console) as bar:
        task = bar.add_task("replaying", total=evaluation.num_answers)
        result = evaluation.run(
            environment(["headstart", *sys.argv[1:]]), lambda more: bar.update(task, advance=more)
        )
    if out is not None:
        result.write(out)
    if picture is not None:
        picture.write_text(drawn(result.workloads, result.summary), encoding="utf-8")
    _print(result, Console())
    typer.echo(json.dumps(result.as_json()))


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _print(result: "EvaluationResult", out: Console) -> None:
    for workload, drafters in result.summary.items():
        about = result.workloads[workload]
        counts = f"{about['answers']} answers of {about['streams']} streams"
        out.print(f"\n{workload}: {about['words']}; {counts}", style="bold", highlight=False)
        table = Table(box=None, pad_edge=False)
        table.add_column("drafter", no_wrap=True)
        for heading in HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, figures in drafters.items():
            table.add_row(
                name,
                _number(figures["tokens_per_pass"]),
                _interval(figures, "answers"),
                _interval(figures, "streams"),
                *(_number(figures[key]) for key in ("first_block", "new_scenes", "first_clips")),
                ", ".join(_short(figures[f"draft_ms_p{share}"]) for share in (50, 95)),
                _number(figures.get("end_to_end")),
            )
        out.print(table)
        _print_differences(result.differences[workload], out)
        _print_bridges(result.bridges[workload], out)
    out.print()


def _print_differences(differences: Mapping[str, Mapping[str, Any]], out: Console) -> None:
    if not differences:
        return
    table = figures_table(
        "tokens a pass more", figures=("", "95% over answers", "95% over streams")
    )
    for name, figures in differences.items():
        intervals = (_interval(figures, over) for over in ("answers", "streams"))
        table.add_row(name, f"{figures['tokens_per_pass']:+.2f}", *intervals)
    out.print()
    out.print(table)


def _print_bridges(bridges: Mapping[str, Mapping[str, Any]], out: Console) -> None:
    if not bridges:
        return
    table = figures_table(
        "tokens a pass, all bridges", figures=("mean", "lowest", "highest", "95% over streams")
    )
    for name, figures in bridges.items():
        is_difference = "streams_low" in figures
        sign = "+" if is_difference else ""
        values = (f"{figures[key]:{sign}.2f}" for key in ("mean", "lowest", "highest"))
        table.add_row(name, *values, _interval(figures, "streams") if is_difference else "")
    out.print()
    out.print(table)


def _interval(figures: Mapping[str, Any], over: str) -> str:
    low, high = figures[f"{over}_low"], figures[f"{over}_high"]
    return "" if low is None else f"{low:.2f}..{high:.2f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:.0f}"
