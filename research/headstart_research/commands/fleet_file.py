"""Reads the file that describes a fleet for `headstart plan --fleet`."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import PlanningError
from headstart_research.bench.live_calibration import live_calibration
from headstart_research.bench.result import BenchResult
from headstart_research.planning.cameras import Cameras
from headstart_research.planning.costs import Costs
from headstart_research.planning.fleet.plan import Bursts, Failures
from headstart_research.planning.fleet.size import EngineSize
from headstart_research.planning.live import LiveWindow
from headstart_research.planning.survival import Survival

TABLES = ("calibration", "camera", "engine", "failures", "bursts")


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A fleet as its owner describes it, for any number of cameras."""

    measured: str
    """What was measured, and on what."""
    bare: Cameras
    ours: Cameras
    engine: EngineSize
    frame_bytes: float
    num_spare: int
    max_crowded: float
    """The share of cameras that may be on an engine with more of them than it holds."""
    failures: Failures
    bursts: Bursts
    assumed: tuple[str, ...]
    """Figures that the file leaves out, and what is taken for them."""


@dataclass
class _Table:
    """A table of the file; what is read of it is noted, and so is what it lacks."""

    name: str
    values: dict[str, Any]
    assumed: list[str]
    known: set[str] = field(default_factory=set)

    def number(self, key: str, usual: float | None = None) -> float:
        """A figure; without ``usual`` the file must have it."""
        self.known.add(key)
        value = self.values.get(key, usual)
        if key not in self.values and usual is not None:
            self.assumed.append(f"{self.name}.{key} = {usual:g}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise PlanningError(
                f"[{self.name}] of the fleet's file needs {key}, a number of 0 or more:"
                " docs/guides/fleet.md says what it is"
            )
        return float(value)

    def text(self, key: str, usual: str) -> str:
        """Words; none of them counts as an assumption."""
        self.known.add(key)
        return str(self.values.get(key, usual))

    def is_set(self, key: str) -> bool:
        """Whether a switch is on; it is off if it is left out."""
        self.known.add(key)
        return self.values.get(key, False) is True

    def check(self) -> None:
        """Refuse what nothing has read: it may be a misspelt name."""
        if unknown := sorted(self.values.keys() - self.known):
            raise PlanningError(
                f"[{self.name}] of the fleet's file has {', '.join(unknown)}, which nothing reads:"
                f" its names are {', '.join(sorted(self.known))}"
            )


def read_fleet(path: Path) -> FleetFile:
    """Read a TOML file; a bench that it names is looked for beside it."""
    try:
        given = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise PlanningError(f"{path.name} is not TOML: {error}") from error
    if unknown := sorted(given.keys() - set(TABLES)):
        raise PlanningError(
            f"{path.name} has [{'], ['.join(unknown)}], which nothing reads:"
            f" its tables are {', '.join(TABLES)}"
        )
    assumed: list[str] = []
    calibration, camera, engine, failing, bursting = (
        _Table(name, given.get(name, {}), assumed) for name in TABLES
    )
    bench = calibration.text("bench", "")
    costs, feed_s, first, later, measured, answer, prompt = (
        _measured(path.parent / bench) if bench else _by_hand(calibration)
    )
    window_s = camera.number("window_s", 2.0)
    every_s = camera.number("every_s", window_s)
    window = LiveWindow(
        int(camera.number("frames", 8)),
        window_s,
        every_s,
        feed_s,
        camera.number("within_s", every_s),
    )
    answer_tokens = int(camera.number("answer_tokens", answer))
    size = EngineSize(
        int(engine.number("gpus", 1)),
        engine.number("kv_gib") * 2**30,
        engine.number("kv_kib_per_token") * 2**10,
        int(camera.number("prompt_tokens", prompt)) + answer_tokens,
        int(engine.number("max_cameras", 32)),
    )
    ours = Cameras(
        costs,
        window,
        answer_tokens,
        later,
        is_fed=True,
        first=first,
        max_windows=size.max_windows,
        half_warm_answers=calibration.number("half_warm_answers", 2.5),
    )
    found = FleetFile(
        calibration.text("label", measured),
        Cameras(costs, window, answer_tokens, max_windows=size.max_windows),
        ours,
        size,
        camera.number("frame_kib") * 2**10,
        int(engine.number("spare", 1)),
        engine.number("crowded", 0.01),
        Failures(
            failing.number("deaths_a_month", 1.0),
            failing.number("restart_s", 60.0),
            failing.number("noticed_s", 2.0),
            int(failing.number("killed", 1)),
            is_memory_kept=failing.is_set("memory_kept"),
        ),
        Bursts(
            bursting.number("every_s", 60.0),
            bursting.number("share", 0.0),
            bursting.number("aligned", 0.0),
        ),
        tuple(assumed),
    )
    for table in (calibration, camera, engine, failing, bursting):
        table.check()
    return found


_Figures = tuple[Costs, float, Survival, Survival, str, int | None, int | None]


def _measured(bench: Path) -> _Figures:
    if not bench.is_file():
        raise PlanningError(f"the fleet's file names the bench {bench}, which is not there")
    result = BenchResult.read(bench)
    found = live_calibration(result)
    machine = f"{bench.name}, on {result.environment.get('machine', 'a machine without a name')}"
    return (
        found.costs,
        found.feed_s,
        found.first,
        found.later,
        machine,
        found.num_tokens,
        found.num_prompt_tokens,
    )


def _by_hand(table: _Table) -> _Figures:
    step_ms = table.number("step_ms")
    verify_token_ms = table.number("verify_token_ms", round(0.02 * step_ms, 4))
    costs = Costs(
        table.number("prefill_ms") / 1e3,
        step_ms / 1e3,
        verify_token_ms / 1e3,
        request_s=table.number("request_ms", verify_token_ms) / 1e3,
    )
    drafts = Survival.independent(table.number("acceptance"), int(table.number("draft_tokens", 32)))
    return (
        costs,
        table.number("feed_ms") / 1e3,
        drafts,
        drafts,
        "figures given by hand",
        None,
        None,
    )
