"""Times bare vLLM and headstart on a card: in turn, or one at a time where two do not fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headstart.doctor.host_facts import installed_version
from headstart.engine.headstart import Headstart
from headstart.errors import BenchError, EngineStartError, HeadstartError
from headstart_research.bench.engine_log import without_home
from headstart_research.bench.environment import environment
from headstart_research.bench.gpu_report import Say
from headstart_research.bench.methods import Method, Rig
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.workloads import Workload

SHARED_MEMORY: Mapping[str, Any] = {"gpu_memory_utilization": 0.45}
"""Of each of two engines on one card."""


@dataclass(frozen=True)
class Speed:
    """A bench of a few methods, whose engines share a card."""

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
        unmeasured = [f"{name} was not measured: {why}" for name, why in run.unmeasured.items()]
        turns = "one at a time" if self.plan.one_engine else "two at a time, asked in turn"
        result = BenchResult(
            environment={**about, "rounds": self.plan.rounds, "engines": turns},
            samples=tuple(run.samples),
            blocks=tuple(run.blocks),
            notes=(*notes, *unmeasured, *ended),
            workloads={work.name: work.words for work in self.workloads},
            methods={method.name: method.words for method in methods},
            live=tuple(work.name for work in self.workloads if work.is_live),
        )
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
