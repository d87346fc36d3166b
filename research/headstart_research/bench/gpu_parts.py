"""The parts of a report: the installation, the same words, and the time they take.

Bare vLLM is started with its own defaults: its model runner, its asynchronous scheduling and its
captured graphs. headstart is started with the same arguments.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from headstart.doctor.findings import inspect
from headstart.doctor.host_facts import installed_version
from headstart.engine.headstart import Headstart
from headstart.errors import BenchError, EngineStartError, HeadstartError
from headstart_research.bench.engine_log import without_home
from headstart_research.bench.environment import environment
from headstart_research.bench.equality import compare
from headstart_research.bench.gpu_report import Part, Say
from headstart_research.bench.methods import Method, Rig
from headstart_research.bench.result import BARE
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.workloads import Workload

PLAIN: Mapping[str, Any] = {"enable_mm_processor_stats": False}
"""What every engine is told. It is vLLM's default; headstart itself would time the vision tower."""
EQUALITY_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "eager": {"enforce_eager": True},
    "graphs": {"enforce_eager": False},
}
FLOAT32: Mapping[str, Any] = {"enforce_eager": True, "dtype": "float32"}
FILE_METHODS, LIVE_METHODS = ("none", "cascade"), ("live",)
SHARED_MEMORY: Mapping[str, Any] = {"gpu_memory_utilization": 0.45}
"""Of each of two engines on one card."""


@dataclass(frozen=True)
class GpuParts:
    """What the parts of one report have in common."""

    rig: Rig
    compared: tuple[Workload, Workload]
    """Clips as wholes, and the same clips live."""
    files: tuple[Workload, ...]
    live: Workload
    plan: BenchPlan
    in_float32: bool = False
    """Whether words are also compared in float32, where sums depend on a batch the least."""
    keeps_words: bool = False
    """Whether the questions and the answers are part of the report."""

    def parts(self) -> list[Part]:
        settings = dict(EQUALITY_SETTINGS)
        if self.in_float32:
            settings["float32"] = FLOAT32
        files = Speed(self.rig, self.plan, FILE_METHODS, self.files)
        live = Speed(self.rig, self.plan, LIVE_METHODS, (self.live,))
        return [
            Part("doctor", "what is installed", lambda say: _installation()),
            *(
                Part(f"equality, {name}", "the words of both", partial(self._equality, arguments))
                for name, arguments in settings.items()
            ),
            Part("speed, files", "whole clips", files.measure),
            Part("speed, live", "frames as they land", live.measure),
        ]

    def _equality(self, arguments: Mapping[str, Any], say: Say) -> Mapping[str, Any]:
        starts = Starts(replace(self.rig, vllm={**self.rig.vllm, **arguments}), say)
        found = compare(starts, *self.compared)
        result: dict[str, Any] = {
            "comparisons": [one.as_json() for one in found.comparisons],
            "settings": starts.settings,
        }
        if self.keeps_words:
            items = self.compared[0].camera(0, 0)
            result["words"] = [
                {"question": item.question, "answer": answer.text}
                for item, answer in zip(items, found.answers, strict=True)
            ]
        return result


@dataclass(frozen=True)
class Speed:
    """A bench of a few methods: in turn with bare vLLM, or one at a time where two do not fit."""

    rig: Rig
    plan: BenchPlan
    methods: Sequence[str]
    """By name, beside bare vLLM."""
    workloads: Sequence[Workload]

    def measure(self, say: Say) -> Mapping[str, Any]:
        """The bench as JSON, and what vLLM chose for each method."""
        if self.plan.one_engine:
            return self._run(say)
        on_gpu = installed_version("vllm") is not None
        shared = {**SHARED_MEMORY, **self.rig.vllm} if on_gpu else self.rig.vllm
        try:
            return replace(self, rig=replace(self.rig, vllm=shared))._run(say)
        except EngineStartError as error:
            say("two engines at a time did not start: one at a time")
            note = f"two engines at a time did not start, so they took turns: {error}"
            alone = replace(self, plan=replace(self.plan, one_engine=True))
            return alone._run(say, without_home(note))

    def _run(self, say: Say, *notes: str) -> Mapping[str, Any]:
        known = {method.name: method for method in self.rig.methods()[0]}
        methods = [known[name] for name in (BARE, *self.methods)]
        about = environment(["headstart", "gpu-report"])  # before it is busy
        starts = Starts(self.rig)
        run = Run(starts, methods, self.workloads, self.plan, say)
        ended = self._end_of(run)
        if run.unmeasured and not self.plan.one_engine:
            reasons = "; ".join(f"{name}: {why}" for name, why in run.unmeasured.items())
            raise EngineStartError(reasons)
        result = run.result(about, [*notes, *ended])
        if not result.summary():
            raise BenchError("; ".join(ended) or "nothing was measured with and without headstart")
        return {"bench": result.as_json(), "settings": starts.settings}

    def _end_of(self, run: Run) -> list[str]:
        """Run it; an engine that dies leaves what was measured before, and a note."""
        try:
            run.run()
        except EngineStartError:
            raise
        except Exception as error:
            if isinstance(error, HeadstartError) and (self.plan.one_engine or not run.unmeasured):
                raise
            return [without_home(f"ended early: {type(error).__name__}: {error}")]
        return []


class Starts:
    """Starts engines, and keeps what vLLM chose for each."""

    def __init__(self, rig: Rig, say: Say = lambda _: None) -> None:
        self._rig, self._say = rig, say
        self.settings: dict[str, dict[str, Any]] = {}

    def __call__(self, method: Method) -> Headstart:
        self._say(f"starting {method.name}")
        engine = self._rig.start(method)
        self.settings[method.name] = engine.target.settings
        return engine


def _installation() -> Mapping[str, Any]:
    """What `headstart doctor` finds, in a process of its own: it would hold a part of the card."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        findings = pool.submit(inspect).result()
    return {
        "findings": [
            {"part": one.part, "health": str(one.health), "detail": without_home(one.detail)}
            for one in findings
        ]
    }
