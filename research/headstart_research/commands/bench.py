"""`headstart bench`: measures every method against bare vLLM on this machine."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from headstart.cli.clip_options import Frames, Sensor
from headstart.cli.errors import report_errors
from headstart.cli.starting import engine_arguments, quieten
from headstart.errors import BenchError
from headstart.media.events import SensorSize
from headstart_research.bench.result import BenchResult

if TYPE_CHECKING:
    from headstart_research.bench.methods import Method
    from headstart_research.bench.workloads import Workload

Named = TypeVar("Named", "Method", "Workload")

app = typer.Typer(
    help="Measure drafting against bare vLLM.", no_args_is_help=True, add_completion=False
)
RESULT, PAGE = "bench.json", "bench.html"


@app.callback(invoke_without_command=True)
@report_errors
def bench(
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "--model",
            help="A vision model of vLLM's: a directory, or a name on the hub.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the result and its page.")] = None,
    drafter: Annotated[str | None, typer.Option(help="An EventGPT that drafts.")] = None,
    bridge: Annotated[
        Path | None, typer.Option(help="A learned drafter, of `headstart train bridge`.")
    ] = None,
    memory_log: Annotated[
        Path | None,
        typer.Option(help="Answers known from the start, a file of `headstart train memory`."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Your recordings; without it, headstart-lab's drives.",
        ),
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="What to ask about your recordings; repeatable.")
    ] = None,
    sensor: Sensor = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these of fixed, rotating, short, long, json, streams-2, -4, -8, -16, live,"
            " folder; open-8 and open-16, whose questions arrive by themselves, are played only if"
            " they are named here."
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only these beside bare vLLM; repeatable.")
    ] = None,
    answers: Annotated[int, typer.Option(min=2, help="Answers of each stream in each round.")] = 12,
    warmup: Annotated[
        int, typer.Option(min=0, help="How many of these answers warm up and do not count.")
    ] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is repeated.")] = 2,
    max_tokens: Annotated[int, typer.Option(min=2, help="Longest answer.")] = 96,
    max_draft_tokens: Annotated[int, typer.Option(min=1, help="Longest draft.")] = 32,
    frames: Frames = None,
    cameras_every: Annotated[
        float | None,
        typer.Option(
            help="With the workload live: also how many cameras are held that each ask once in so"
            " many seconds."
        ),
    ] = None,
    two_devices: Annotated[
        bool,
        typer.Option("--two-devices", help="Also measure the target alone on both devices."),
    ] = False,
    one_engine: Annotated[
        bool,
        typer.Option(
            "--one-engine", help="Run one engine at a time, where two do not fit in memory."
        ),
    ] = False,
    vllm: Annotated[
        list[str] | None, typer.Option(help="An engine argument of vLLM's, as name=value.")
    ] = None,
    drafter_vllm: Annotated[
        list[str] | None, typer.Option(help="The same for the drafter's engine.")
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Show vLLM's own messages.")] = False,
) -> None:
    """Measure every method in turn with bare vLLM, on headstart-lab's drives or your recordings.

    Prints a table, and one line of JSON last; writes every sample and a page with charts.
    """
    if context.invoked_subcommand is not None:
        return
    if target is None or out is None:
        raise typer.BadParameter("give --target and --out")
    if not verbose:
        quieten()
    from headstart_research.bench import known_answers
    from headstart_research.bench.environment import environment
    from headstart_research.bench.folder import NUM_FRAMES, folder_workloads
    from headstart_research.bench.methods import Rig, checked
    from headstart_research.bench.page import page
    from headstart_research.bench.run import REST_S, BenchPlan, Run
    from headstart_research.bench.workloads import closed_loops, lab_workloads

    plan = BenchPlan(rounds, warmup, one_engine, cameras_every, rest_s=REST_S)
    rig = Rig(
        checked(target),
        checked(drafter) if drafter else None,
        max_draft_tokens,
        {"use_tqdm_on_load": verbose, **engine_arguments(vllm or [])},
        engine_arguments(drafter_vllm or []),
        frames,
        bridge.absolute() if bridge else None,
        (out / known_answers.FILE).absolute() if memory_log else None,
    )
    methods, notes = rig.methods(two_devices)
    if method:
        methods = [methods[0], *_chosen(methods[1:], method, "method")]
    if folder is not None:
        size = SensorSize.parse(sensor) if sensor else None
        workloads = folder_workloads(
            folder, question or [], answers, max_tokens, size, frames or NUM_FRAMES
        )
    elif frames is not None:
        raise BenchError("the lab's clips have 8 frames: give --frames with --folder only")
    else:
        workloads = lab_workloads(answers, max_tokens)
    workloads = _chosen(workloads, workload, "workload") if workload else closed_loops(workloads)

    out.mkdir(parents=True, exist_ok=True)
    if memory_log is not None and rig.memory_log is not None:
        knowing = [found.name for found in methods if found.knows_answers]
        known_answers.write_known_answers(
            memory_log, rig.memory_log, workloads, knowing, plan.rounds
        )
    about = environment(["headstart", *sys.argv[1:]])
    progress = Console(stderr=True)
    with progress.status("") as status:
        say = status.update if progress.is_terminal else progress.print
        run = Run(rig.start, methods, workloads, plan, say)
        try:
            run.run()
        except KeyboardInterrupt:
            notes.append("interrupted: what was measured until then is shown")
    notes += [f"{name} was not measured: {why}" for name, why in run.unmeasured.items()]
    notes += [
        f"{name}: bare vLLM gives {capacity:.2f} answers a second while all cameras ask again at"
        " once; the loads are shares of that"
        for name, capacity in run.capacities.items()
    ]
    result = BenchResult(
        environment={
            **about,
            "target": target,
            "drafter": drafter or "none",
            "rounds": rounds,
            "engines": "one at a time" if plan.one_engine else "two at a time, asked in turn",
        },
        samples=tuple(run.samples),
        blocks=tuple(run.blocks),
        notes=tuple(notes),
        workloads={played.name: played.words for work in workloads for played in work.played()},
        methods={found.name: found.words for found in methods},
        live=tuple(work.name for work in workloads if work.is_live),
        cameras=run.cameras,
        loads=run.loads,
    )
    if not result.summary():
        raise BenchError("stopped before anything was measured with and without a method")
    result.write(out / RESULT)
    (out / PAGE).write_text(page(result))
    _print(result, out)


@app.command()
@report_errors
def compare(
    before: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A bench.json.")],
    after: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A later one.")],
) -> None:
    """Print what became faster or slower between two results; exit with 1 on a regression."""
    from headstart_research.bench.comparison import compare as compare_results

    changes = compare_results(BenchResult.read(before), BenchResult.read(after))
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in ("before", "after", ""):
        table.add_column(heading, justify="right")
    for change in changes:
        said = "slower" if change.is_regression else "faster" if change.is_gain else ""
        table.add_row(
            change.workload,
            change.method,
            *(
                f"{r.value:.2f} [dim]({r.low:.2f} to {r.high:.2f})[/]"
                for r in (change.before, change.after)
            ),
            said,
        )
    Console().print(table)
    worse = [[change.workload, change.method] for change in changes if change.is_regression]
    typer.echo(json.dumps({"regressions": worse, "compared": len(changes)}))
    if worse:
        raise typer.Exit(code=1)


def _chosen(known: list[Named], names: list[str], kind: str) -> list[Named]:
    by_name = {item.name: item for item in known}
    for name in names:
        if name not in by_name:
            there = ", ".join(map(shlex.quote, by_name))  # some hold commas
            raise BenchError(f"no {kind} is called {name!r} here; there are: {there}")
    return [by_name[name] for name in names]


def _print(result: BenchResult, out: Path) -> None:
    summary = result.summary()
    console = Console()
    for workload, rows in summary.items():
        rate = result.rates.get(workload)
        table = Table(
            box=None,
            pad_edge=False,
            title=f"\n{workload}" + (f", {rate:.2f} questions a second" if rate else ""),
            title_justify="left",
            title_style="bold",
        )
        table.add_column("method", no_wrap=True)
        for heading in (
            "end to end",
            "95%",
            "p95",
            "first token",
            "tokens/pass",
            "throughput",
            "ms",
        ):
            table.add_column(heading, justify="right")
        for method, row in rows.items():
            table.add_row(
                method,
                f"{row['end_to_end']:.2f}x",
                f"{row['end_to_end_low']:.2f} to {row['end_to_end_high']:.2f}",
                f"{row['end_to_end_p95']:.2f}x",
                f"{row['first_token']:.2f}x",
                f"{row['tokens_per_pass']:.2f}",
                f"{row['throughput']:.2f}x",
                f"{row['end_to_end_ms']:.0f}",
            )
        console.print(table)
    console.print()
    for note in result.notes:
        console.print(note, style="dim", highlight=False)
    console.print(f"\n{out / RESULT} holds every sample, {out / PAGE} shows them", highlight=False)
    typer.echo(json.dumps({"summary": summary}))
