"""`headstart bench`: measures every method against bare vLLM on this machine."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.options import SENSOR, DraftModel, TargetIfGiven, Vllm
from headstart.cli.settings import SET, CommandSettings, engine_arguments, setting
from headstart.cli.terminal import is_verbose, quieten, report_errors
from headstart.errors import BenchError
from headstart.media.events import SensorSize
from headstart_research.bench.result import BenchResult
from headstart_research.commands.options import Folder, Questions, chosen
from headstart_research.commands.tables import figures_table

app = typer.Typer(no_args_is_help=True, add_completion=False)
RESULT, PAGE = "bench.json", "bench.html"
HEADINGS = ("end to end", "95%", "p95", "first token", "tokens/pass", "throughput", "ms")


@dataclass(frozen=True)
class BenchSettings(CommandSettings):
    """How a bench is played, beside what is measured."""

    warmup: int | None = setting(
        None, "How many answers warm up and do not count; else a third, at most 4.", at_least=0
    )
    max_tokens: int = setting(96, "Longest answer.", at_least=2)
    max_draft_tokens: int = setting(32, "Longest draft.", at_least=1)
    frames: int | None = setting(None, "Frames of a clip of your recordings.", at_least=1)
    sensor: str | None = setting(None, SENSOR)
    bridge: Path | None = setting(None, "A learned drafter, of `headstart train bridge`.")
    memory_log: Path | None = setting(None, "Answers known at first, of `headstart train memory`.")
    cameras_every: float | None = setting(
        None, "Live: also how many cameras are held that each ask once in so many seconds."
    )
    two_devices: bool = setting(False, "Also measure the target alone on both devices.")
    one_engine: bool = setting(False, "Run one engine at a time, where two do not fit in memory.")


@app.callback(invoke_without_command=True)
@report_errors
def bench(
    context: typer.Context,
    target: TargetIfGiven = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the result and its page.")] = None,
    folder: Folder = None,
    question: Questions = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only these of fixed, rotating, short, long, json, streams-2, -4, -8, -16, live,"
            " folder; open-8 and open-16, whose questions arrive by themselves, are played only if"
            " they are named here.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these beside bare vLLM.")
    ] = None,
    answers: Annotated[
        int, typer.Option(metavar="N", min=2, help="Answers of each stream in each round.")
    ] = 12,
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often everything is repeated.")
    ] = 2,
    draft_model: DraftModel = None,
    vllm: Vllm = None,
    given: Annotated[list[str] | None, SET, BenchSettings] = None,
) -> None:
    """Measure headstart against bare vLLM.

    Every method takes turns with bare vLLM, on headstart-lab's drives or your recordings. Prints
    a table, and one line of JSON last; writes every sample and a page with charts.
    """
    if context.invoked_subcommand is not None:
        return
    if target is None or out is None:
        raise typer.BadParameter("give --target and --out")
    settings = BenchSettings.read(given)
    warmup = min(4, answers // 3) if settings.warmup is None else settings.warmup
    arguments, beside = engine_arguments(vllm, draft_model)
    quieten()
    from headstart_research.bench import known_answers
    from headstart_research.bench.environment import environment
    from headstart_research.bench.folder import NUM_FRAMES, folder_workloads
    from headstart_research.bench.methods import Rig, checked
    from headstart_research.bench.page import page
    from headstart_research.bench.run import REST_S, BenchPlan, Run
    from headstart_research.bench.workloads import closed_loops, lab_workloads

    plan = BenchPlan(rounds, warmup, settings.one_engine, settings.cameras_every, rest_s=REST_S)
    bridge, memory_log, frames = settings.bridge, settings.memory_log, settings.frames
    rig = Rig(
        checked(target),
        checked(draft_model) if draft_model else None,
        settings.max_draft_tokens,
        {"use_tqdm_on_load": is_verbose(), **arguments},
        beside,
        frames,
        bridge.absolute() if bridge else None,
        (out / known_answers.FILE).absolute() if memory_log else None,
    )
    methods, notes = rig.methods(settings.two_devices)
    if method:
        methods = [methods[0], *chosen(methods[1:], method, "method")]
    if folder is not None:
        size = SensorSize.parse(settings.sensor) if settings.sensor else None
        workloads = folder_workloads(
            folder, question or [], answers, settings.max_tokens, size, frames or NUM_FRAMES
        )
    elif frames is not None:
        raise BenchError("the lab's clips have 8 frames: set frames with --folder only")
    else:
        workloads = lab_workloads(answers, settings.max_tokens)
    workloads = chosen(workloads, workload, "workload") if workload else closed_loops(workloads)

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
    result = run.result({**about, "target": target, "drafter": draft_model or "none"}, notes)
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
    table = figures_table("workload", "method", figures=("before", "after", ""))
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


def _print(result: BenchResult, out: Path) -> None:
    summary = result.summary()
    console = Console()
    for workload, rows in summary.items():
        rate = result.rates.get(workload)
        table = figures_table(
            "method",
            figures=HEADINGS,
            title=workload + (f", {rate:.2f} questions a second" if rate else ""),
        )
        table.title_style = "bold"
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
