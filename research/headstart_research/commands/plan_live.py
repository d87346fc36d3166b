"""`headstart plan --feed-ms`: the waits of live cameras, and how many of them an engine holds."""

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from headstart_research.commands.tables import figures_table
from headstart_research.planning.cameras import Cameras, Load, percentile
from headstart_research.planning.costs import Costs
from headstart_research.planning.live import LiveForecast, LiveWindow, live_forecasts
from headstart_research.planning.survival import Survival

LABELS = {
    "bare": "bare vLLM, the window whole",
    "fed": "frames fed as they arrive",
    "drafts": "drafts from memory",
    "both": "fed, with drafts",
}


def print_live_plan(costs: Costs, window: LiveWindow, tokens: int, survival: Survival) -> None:
    """Print a table of one camera, a table of several, and one line of JSON last."""
    forecasts = live_forecasts(costs, window, tokens, survival)
    engines = {
        "bare": Cameras(costs, window, tokens),
        "fed": Cameras(costs, window, tokens, is_fed=True),
        "drafts": Cameras(costs, window, tokens, survival),
        "both": Cameras(costs, window, tokens, survival, is_fed=True),
    }
    held = {name: engine.held() for name, engine in engines.items()}
    out = Console()
    out.print(_one_camera(forecasts, held))
    more_s = forecasts["both"].engine_s - forecasts["drafts"].engine_s
    out.print(
        f"\nfeeding frame by frame costs the engine {more_s * 1e3:+.0f} ms a window beside one"
        " prefill;\nit is done in idle time only: with many cameras waits grow back to those of"
        " whole prefills"
    )
    best = held["both"]
    most = 0 if best is None else best.num_cameras
    doubled = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    loads = [
        engines["both"].load(number) for number in (*doubled, *sorted({max(1, most), most + 1}))
    ]
    out.print(_several_cameras(loads, window))
    summary = {
        "methods": {
            name: _forecast_json(forecast, held[name]) for name, forecast in forecasts.items()
        },
        "cameras": [_load_json(load, window) for load in loads],
    }
    typer.echo(json.dumps(summary))


def _one_camera(forecasts: dict[str, LiveForecast], held: dict[str, Load | None]) -> Table:
    headings = ("first ms", "last ms", "sooner", "engine ms", "cameras")
    table = figures_table("from the last frame on", figures=headings)
    alone = forecasts["bare"].answer
    for name, forecast in forecasts.items():
        load = held[name]
        table.add_row(
            LABELS[name],
            f"{forecast.answer.first_token_s * 1e3:.0f}",
            f"{forecast.answer.end_to_end_s * 1e3:.0f}",
            f"{forecast.answer.speedup_over(alone):.2f}x",
            f"{forecast.engine_s * 1e3:.0f}",
            "none" if load is None else str(load.num_cameras),
        )
    return table


def _several_cameras(loads: list[Load], window: LiveWindow) -> Table:
    table = figures_table(
        "cameras",
        figures=("first ms", "last ms", "p95 ms", "dropped", "frames fed", "answering"),
        title=f"fed, with drafts, each camera every {window.every_s:g} s",
    )
    for load in loads:
        table.add_row(
            f"{load.num_cameras}" + ("" if load.is_held(window) else " (not held)"),
            f"{percentile(load.first_token_s, 0.5) * 1e3:.0f}",
            f"{percentile(load.last_word_s, 0.5) * 1e3:.0f}",
            f"{percentile(load.last_word_s, 0.95) * 1e3:.0f}",
            f"{load.num_dropped}",
            f"{load.fed_share:.0%}",
            f"{load.busy_share:.0%}",
        )
    return table


def _forecast_json(forecast: LiveForecast, held: Load | None) -> dict[str, Any]:
    return {
        "first_token_ms": round(forecast.answer.first_token_s * 1e3, 3),
        "last_word_ms": round(forecast.answer.end_to_end_s * 1e3, 3),
        "engine_ms": round(forecast.engine_s * 1e3, 3),
        "cameras_held": 0 if held is None else held.num_cameras,
    }


def _load_json(load: Load, window: LiveWindow) -> dict[str, Any]:
    return {
        "cameras": load.num_cameras,
        "is_held": load.is_held(window),
        "first_token_ms_p50": round(percentile(load.first_token_s, 0.5) * 1e3, 3),
        "last_word_ms_p50": round(percentile(load.last_word_s, 0.5) * 1e3, 3),
        "last_word_ms_p95": round(percentile(load.last_word_s, 0.95) * 1e3, 3),
        "dropped": load.num_dropped,
        "fed_share": round(load.fed_share, 4),
        "busy_share": round(load.busy_share, 4),
    }
