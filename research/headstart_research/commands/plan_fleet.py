"""`headstart plan --fleet`: engines, KV cache, network and price of many cameras."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import typer
from rich.console import Console
from rich.table import Table

from headstart.errors import PlanningError
from headstart_research.commands.fleet_file import FleetFile, read_fleet
from headstart_research.commands.simulate_fleet import simulated
from headstart_research.planning.cameras import Load, percentile
from headstart_research.planning.fleet.size import (
    HOURS_A_MONTH,
    FleetSize,
    bounded_size,
    camera_bits_a_second,
    hashed_size,
)

BOUND = 1.25
"""Cameras that a bounding router gives an engine at most, over those of an average one."""
BARE, OURS = "bare vLLM", "headstart"
HASHED, BOUNDED = f"{OURS}, hashed", f"{OURS}, bounded"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a GPU for an hour, in a currency."""

    amount: float
    currency: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Such as `1.20 EUR`."""
        amount, _, currency = text.strip().partition(" ")
        try:
            price = cls(float(amount), currency.strip())
        except ValueError:
            price = cls(-1.0, "")
        if price.amount < 0 or not price.currency:
            raise PlanningError(
                f"a price of {text!r}: give an amount and a currency, such as '1.20 EUR'"
            )
        return price


def print_fleet_plan(
    path: Path, numbers: Sequence[int], price: Price | None, simulate_s: float | None
) -> None:
    """Print what one engine holds, the fleets, perhaps their simulation, and one line of JSON."""
    fleet = read_fleet(path)
    loads = {BARE: fleet.bare.held(), OURS: fleet.ours.held()}
    most = fleet.engine.max_cameras
    held = {name: min(load.num_cameras, most) if load else 0 for name, load in loads.items()}
    out = Console()
    out.print(f"calibrated by {fleet.measured}", highlight=False)
    out.print(_one_engine(fleet, loads), highlight=False)
    sizes = {number: _sizes(fleet, held, number) for number in numbers}
    out.print(_fleets(fleet, sizes, price))
    out.print(_explained(fleet, price), highlight=False)
    summary: dict[str, Any] = {
        "measured": fleet.measured,
        "assumed": fleet.assumed,
        "cameras_held": held,
        "fleets": [
            _size_json(fleet, name, size, price)
            for named in sizes.values()
            for name, size in named.items()
        ],
    }
    if simulate_s is not None:
        summary["simulated"] = [
            simulated(fleet, named[HASHED], simulate_s, out) for named in sizes.values()
        ]
    typer.echo(json.dumps(summary))


def _sizes(fleet: FleetFile, held: dict[str, int], number: int) -> dict[str, FleetSize]:
    """The fleets for a number of cameras; bare vLLM's questions may go to any engine."""
    spare = fleet.num_spare
    sizes = {
        HASHED: hashed_size(number, held[OURS], spare, fleet.max_crowded),
        BOUNDED: bounded_size(number, held[OURS], spare, BOUND),
    }
    return {BARE: bounded_size(number, held[BARE], spare), **sizes} if held[BARE] else sizes


def _one_engine(fleet: FleetFile, loads: dict[str, Load | None]) -> str:
    costs, engine = fleet.ours.costs, fleet.engine
    lines = [
        f"prefill {costs.prefill_s * 1e3:.0f} ms, step {costs.step_s * 1e3:.1f} ms, feed"
        f" {fleet.ours.window.feed_s * 1e3:.0f} ms, {fleet.ours.num_tokens} tokens an answer,"
        f" {1 + sum(fleet.ours.with_prompt().shares):.1f} of them with the prompt and"
        f" {fleet.ours.survival.tokens_per_pass:.1f} a later pass",
        f"the KV cache holds {engine.max_windows} windows of"
        f" {engine.window_bytes / 2**20:.0f} MiB; the server takes {engine.max_cameras} cameras",
    ]
    for name, load in loads.items():
        if load is None:
            lines.append(f"{name}: an engine does not hold even one such camera")
            continue
        limit = " (the server's limit)" if load.num_cameras > engine.max_cameras else ""
        lines.append(
            f"{name}: an engine holds {min(load.num_cameras, engine.max_cameras)}"
            f" cameras{limit}, 95% of the answers within {fleet.ours.window.limit_s:g} s (at"
            f" {load.num_cameras}: {percentile(load.last_word_s, 0.95):.2f} s)"
        )
    return "\n".join(lines)


def _fleets(fleet: FleetFile, sizes: dict[int, dict[str, FleetSize]], price: Price | None) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("cameras", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("engines", "GPUs", "fill", "KV GiB", "Gbit/s in"):
        table.add_column(heading, justify="right")
    if price is not None:
        table.add_column(f"{price.currency} a camera and month", justify="right")
    for number, named in sizes.items():
        for name, size in named.items():
            row = _size_json(fleet, name, size, price)
            cells = [
                f"{number:,}",
                name,
                f"{size.num_engines:,}",
                f"{row['gpus']:,}",
                f"{size.fill:.0%}",
                f"{row['kv_gib']:,.0f}",
                f"{row['network_gbit_a_second']:.3g}",
            ]
            if price is not None:
                cells.append(f"{row['price_a_camera_and_month']:.2f}")
            table.add_row(*cells)
    return table


def _explained(fleet: FleetFile, price: Price | None) -> str:
    lines = [
        f"\n{BARE}: every question goes to any engine. hashed: a camera stays on the engine that a"
        f" ring gives it, at most {fleet.max_crowded:.1%} of them on an engine with more than it"
        f" holds. bounded: no engine gets more than {BOUND:g} times the average. Each with"
        f" {fleet.num_spare} spare. fill: of what an average engine holds. KV GiB: a window of"
        " every camera at once",
        "assumed: " + ("; ".join(fleet.assumed) or "nothing, the file has all figures"),
    ]
    if price is not None:
        lines.append(
            f"the price of a GPU hour, {price.amount:g} {price.currency}, is yours; a month has"
            f" {HOURS_A_MONTH:g} hours, and nothing but GPUs is paid for"
        )
    return "\n".join(lines)


def _size_json(fleet: FleetFile, name: str, size: FleetSize, price: Price | None) -> dict[str, Any]:
    bits = camera_bits_a_second(fleet.ours.window, fleet.frame_bytes)
    row: dict[str, Any] = {
        "cameras": size.num_cameras,
        "method": name,
        "held": size.held,
        "engines": size.num_engines,
        "gpus": size.num_engines * fleet.engine.num_gpus,
        "fill": round(size.fill, 4),
        "kv_gib": size.num_cameras * fleet.engine.window_bytes / 2**30,
        "network_gbit_a_second": size.num_cameras * bits / 1e9,
    }
    if price is not None:
        row["currency"] = price.currency
        row["price_a_camera_and_month"] = round(
            size.monthly_price(price.amount, fleet.engine.num_gpus), 4
        )
    return row
