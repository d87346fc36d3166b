"""The parts of a report: the installation, the same words, and the time they take.

Bare vLLM is started with its own defaults: its model runner, its asynchronous scheduling and its
captured graphs. headstart is started with the same arguments.
"""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from headstart.doctor.findings import inspect
from headstart_research.bench.engine_log import without_home
from headstart_research.bench.equality import compare
from headstart_research.bench.gpu_report import Part, Say
from headstart_research.bench.gpu_speed import Speed, Starts
from headstart_research.bench.methods import Rig
from headstart_research.bench.run import BenchPlan
from headstart_research.bench.workloads import Workload

PLAIN: Mapping[str, Any] = {"enable_mm_processor_stats": False}
"""What every engine is told. It is vLLM's default; headstart itself would time the vision tower."""
EQUALITY_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "eager": {"enforce_eager": True},
    "graphs": {"enforce_eager": False},
}
FLOAT32: Mapping[str, Any] = {"enforce_eager": True, "dtype": "float32"}
FILE_METHODS, LIVE_METHODS = ("none", "cascade"), ("live",)


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
