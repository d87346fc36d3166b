"""`headstart plan`: forecasts the speed-up of drafting from a few figures of the hardware."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors
from headstart.errors import PlanningError
from headstart_research.commands.plan_live import print_live_plan
from headstart_research.commands.tables import figures_table
from headstart_research.planning.costs import Costs
from headstart_research.planning.forecast import bare, break_even_accepted, drafted
from headstart_research.planning.live import LiveWindow
from headstart_research.planning.survival import Survival

DRAFT_LENGTHS = (2, 4, 8, 16, 32)
ACCEPTANCES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
BATCHES = (1, 2, 4, 8, 16)
TYPICAL_VERIFY_SHARE = 0.02  # of a step, where no figure is given; about that of a CPU core


@dataclass(frozen=True)
class PlanSettings(CommandSettings):
    """Figures of a forecast that have usual values, and what else is made of it."""

    verify_token_ms: float | None = setting(None, "Of a drafted token; else 2% of a step.")
    picture: Path | None = setting(None, "Draw speed-up against acceptance into this SVG file.")
    window: float = setting(2.0, "Live: seconds that a question sees.")
    step: float | None = setting(None, "Live: seconds between questions; else the window.")
    frames: int = setting(8, "Live: frames of a window.")
    acceptance: float = setting(0.9, "Live: the chance that a drafted token is right.")
    draft_tokens: int = setting(32, "Live: length of a draft.", at_least=1)
    gpu_hour: str | None = setting(None, "Fleet: the price of a GPU's hour, such as '1.20 EUR'.")
    simulate: float | None = setting(None, "Fleet: simulate so many seconds.", at_least=1)


@report_errors
def plan(
    prefill_ms: Annotated[
        float | None, typer.Option(help="From the question to the target's first token, alone.")
    ] = None,
    step_ms: Annotated[float | None, typer.Option(help="A decoding step of the target.")] = None,
    tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Length of an answer.")] = 50,
    feed_ms: Annotated[
        float | None,
        typer.Option(help="Forecast live cameras: the time to prefill one frame as it arrives."),
    ] = None,
    bench: Annotated[
        Path | None,
        typer.Option("--from", exists=True, dir_okay=False, help="A bench.json to forecast from."),
    ] = None,
    fleet: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A TOML file that describes a fleet."),
    ] = None,
    cameras: Annotated[
        list[int] | None,
        typer.Option(metavar="N", min=1, help="Fleet: how many cameras, else 1000; repeatable."),
    ] = None,
    given: Annotated[list[str] | None, SET, PlanSettings] = None,
) -> None:
    """Forecast what drafting gains, live cameras wait, a fleet costs.

    The forecast is made from figures given by hand, or from a bench's result for every workload
    and method that it measured, and says how many drafted tokens must be accepted for drafting to
    pay. With --feed-ms, it says how long a live camera's answers wait from the last frame on, and
    how many cameras the engine holds. With --fleet, it says how many engines many cameras need, and
    what they cost. Prints tables, and one line of JSON last.
    """
    settings = PlanSettings.read(given)
    if fleet is not None:
        from headstart_research.commands.plan_fleet import Price, print_fleet_plan

        price = None if settings.gpu_hour is None else Price.parse(settings.gpu_hour)
        print_fleet_plan(fleet, cameras or [1000], price, settings.simulate)
        return
    if feed_ms is not None and bench is not None:
        raise typer.BadParameter(
            "live cameras (--feed-ms) are forecast from figures given by hand, not --from a bench"
        )
    if bench is not None:
        _print_measured(bench)
        return
    if prefill_ms is None or step_ms is None:
        raise typer.BadParameter("give --prefill-ms and --step-ms, or --from bench.json")
    verify_token_ms = settings.verify_token_ms
    if verify_token_ms is None:
        verify_token_ms = TYPICAL_VERIFY_SHARE * step_ms
    costs = Costs(prefill_ms / 1e3, step_ms / 1e3, verify_token_ms / 1e3)
    if feed_ms is not None:
        step = settings.window if settings.step is None else settings.step
        camera = LiveWindow(settings.frames, settings.window, step, feed_ms / 1e3)
        survival = Survival.independent(settings.acceptance, settings.draft_tokens)
        print_live_plan(costs, camera, tokens, survival)
        return
    _print_plan(costs, tokens)
    if settings.picture is not None:
        _draw(costs, tokens, settings.picture)


def _print_plan(costs: Costs, tokens: int) -> None:
    out, alone = Console(), bare(costs, tokens)
    out.print(
        f"the target alone: {alone.end_to_end_s * 1e3:.0f} ms for {tokens} tokens,"
        f" the first after {alone.first_token_s * 1e3:.0f} ms"
    )

    forecast = {
        length: [
            drafted(costs, tokens, survival, first=survival).speedup_over(alone)
            for acceptance in ACCEPTANCES
            for survival in [Survival.independent(acceptance, length)]
        ]
        for length in DRAFT_LENGTHS
    }
    drafts = [f"draft {length}" for length in DRAFT_LENGTHS]
    table = figures_table("each token right", figures=drafts, title="speed-up, end to end")
    for number, acceptance in enumerate(ACCEPTANCES):
        cells = [
            f"[dim]{curve[number]:.2f}x[/]" if curve[number] <= 1 else f"{curve[number]:.2f}x"
            for curve in forecast.values()
        ]
        table.add_row(f"{acceptance:.0%}", *cells)
    out.print(table)

    even = figures_table(
        "requests at once",
        figures=drafts,
        title="break-even: tokens of each draft that must be right",
    )
    break_even = {
        batch: [break_even_accepted(costs, length, batch) for length in DRAFT_LENGTHS]
        for batch in BATCHES
    }
    for batch, row in break_even.items():
        cells = [
            f"{value:.2f}" if value <= length else "never"
            for value, length in zip(row, DRAFT_LENGTHS, strict=True)
        ]
        even.add_row(str(batch), *cells)
    out.print(even)
    summary = {
        "end_to_end_ms": round(alone.end_to_end_s * 1e3, 3),
        "first_token_ms": round(alone.first_token_s * 1e3, 3),
        "draft_lengths": DRAFT_LENGTHS,
        "speedup": {
            str(acceptance): [round(curve[number], 4) for curve in forecast.values()]
            for number, acceptance in enumerate(ACCEPTANCES)
        },
        "break_even": {str(b): [round(value, 4) for value in row] for b, row in break_even.items()},
    }
    typer.echo(json.dumps(summary))


def _draw(costs: Costs, tokens: int, picture: Path) -> None:
    from headstart_research.bench.chart import lines
    from headstart_research.bench.svg import standalone

    alone = bare(costs, tokens)
    shares = [number / 50 for number in range(50)]
    curves = {
        f"draft of {length}": [
            (100 * share, drafted(costs, tokens, survival, first=survival).speedup_over(alone))
            for share in shares
            for survival in [Survival.independent(share, length)]
        ]
        for length in DRAFT_LENGTHS
    }
    drawn = lines(curves, "% chance of each drafted token", "speed-up, end to end", even=1.0)
    picture.write_text(standalone(drawn))


def _print_measured(bench: Path) -> None:
    from headstart_research.bench.calibration import check_forecasts
    from headstart_research.bench.result import BenchResult

    checks = check_forecasts(BenchResult.read(bench))
    if not checks:
        raise PlanningError(
            f"{bench} has open loads only, whose answers wait in a queue that no forecast knows:"
            " give a bench of closed loops, such as streams-8"
        )
    headings = ("mean ms", "forecast ms", "off by", "speed-up", "draft pays from")
    table = figures_table("workload", "method", figures=headings)
    for check in checks:
        table.add_row(
            check.workload,
            check.method,
            f"{check.measured_s * 1e3:.0f}",
            f"{check.forecast_s * 1e3:.0f}",
            f"{check.error:+.1%}",
            f"{check.forecast_speedup:.2f}x",
            "" if check.break_even is None else f"{check.break_even:.2f} tokens",
        )
    Console().print(table)
    typer.echo(json.dumps({"forecast": [check.as_json() for check in checks]}))
