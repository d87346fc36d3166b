"""An evaluation: every drafter on every workload, and the result of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headstart.errors import EvaluationError
from headstart_research.bench.result import BenchResult
from headstart_research.evaluation.contenders import MEMORY, WARM, Bridge, Contender
from headstart_research.evaluation.measured import LIMITS, Measured, mean_over, spread
from headstart_research.evaluation.shown import SELECTIONS
from headstart_research.evaluation.workload import IN_TURN, ONE_QUESTION, Workload

FORMAT = 1
BENCH_WORKLOADS = {ONE_QUESTION: "fixed", IN_TURN: "rotating"}
BENCH_METHODS = {
    MEMORY: "memory",
    WARM: "warm",
    "bridge-target": "bridge",
    "bridge-both": "bridge, events",
}
"""A bench's names of these drafters; registered drafters have the same name in both."""
BENCH_FIGURES = ("end_to_end", "end_to_end_low", "end_to_end_high", "end_to_end_p95")
Figures = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By workload, and by the drafter or whatever else they are of."""


@dataclass(frozen=True)
class EvaluationResult:
    """What was measured, and on what."""

    environment: Mapping[str, Any]
    workloads: Mapping[str, Mapping[str, str | int]]
    drafters: Mapping[str, str]
    """What each name stands for."""
    summary: Figures
    """The figures of each drafter in each workload; see docs/learned-drafters.md."""
    differences: Figures
    """Tokens a pass of one drafter over another's, on the same answers."""
    bridges: Figures
    """Of several bridges: mean, lowest and highest tokens a pass by the features shown, and of
    the differences, which also have intervals."""
    limits: Mapping[str, int]
    bench: Mapping[str, Any] | None = None
    """The environment of the bench whose end-to-end ratios stand in the summary."""
    format: int = FORMAT

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, file: Path) -> None:
        """Into a file, whose directory is made if it is not there."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise EvaluationError(
                f"{file} cannot be written ({error.strerror}): name another file"
            ) from error


@dataclass(frozen=True)
class Evaluation:
    """Which drafters are measured on which workloads."""

    workloads: Sequence[Workload]
    others: Sequence[Contender]
    bridges: Sequence[Bridge]
    features: Sequence[str]
    """Those that the records have."""
    bench: BenchResult | None = None
    """Of the same drafters by the clock, if it was measured."""

    @property
    def contenders(self) -> list[Contender]:
        """All of them, in the order of the table."""
        found = [bridge.contenders(self.features) for bridge in self.bridges]
        return [*self.others, *(contender for some in found for contender in some)]

    @property
    def num_answers(self) -> int:
        """That are replayed, of all drafters together."""
        return len(self.contenders) * sum(len(work.answers) for work in self.workloads)

    def run(
        self, environment: Mapping[str, Any], advance: Callable[[int], None]
    ) -> EvaluationResult:
        """Measure one after another; ``advance`` is told how many answers more are done."""
        contenders = self.contenders
        measured = {
            work.name: {one.name: Measured.of(one, work, advance) for one in contenders}
            for work in self.workloads
        }
        summary = {
            work: _end_to_end(self.bench, work, {n: one.figures() for n, one in found.items()})
            for work, found in measured.items()
        }
        return EvaluationResult(
            environment=environment,
            workloads={work.name: work.about() for work in self.workloads},
            drafters={contender.name: contender.words for contender in contenders},
            summary=summary,
            differences={work: self._differences(found) for work, found in measured.items()},
            bridges={work: self._over_bridges(found) for work, found in measured.items()},
            limits=asdict(LIMITS),
            bench=None if self.bench is None else self.bench.environment,
        )

    def _differences(self, measured: Mapping[str, Measured]) -> dict[str, dict[str, Any]]:
        best = WARM if WARM in measured else MEMORY
        pairs = [
            (WARM, MEMORY),
            *((one.name, best) for one in self.others if one.name not in (WARM, MEMORY)),
            *(pair for bridge in self.bridges for pair in bridge.pairs()),
        ]
        return {
            f"{more} over {less}": measured[more].over(measured[less])
            for more, less in pairs
            if more in measured and less in measured
        }

    def _over_bridges(self, measured: Mapping[str, Measured]) -> dict[str, dict[str, Any]]:
        """Nothing where there is only one: its figures stand in the summary."""
        if len(self.bridges) < 2:
            return {}
        found = {}
        for selection in SELECTIONS:
            names = [bridge.name(selection) for bridge in self.bridges]
            if names[0] in measured:
                found[selection] = spread([measured[n].replay.tokens_per_pass for n in names])
        compared = [bridge.pairs() for bridge in self.bridges]
        for place, (more, less) in enumerate(replace(self.bridges[0], label="").pairs()):
            seeds = [pairs[place] for pairs in compared]
            if all(name in measured for name in seeds[0]):
                drafters = [(measured[one], measured[other]) for one, other in seeds]
                found[f"{more} over {less}"] = mean_over(drafters)
        return found


def _end_to_end(
    bench: BenchResult | None, workload: str, drafters: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The drafters' figures of a workload, with the bench's ratios where it measured them."""
    measured = {} if bench is None else bench.summary().get(BENCH_WORKLOADS[workload], {})
    return {
        name: {**figures, **_ratios(measured.get(BENCH_METHODS.get(name, name), {}))}
        for name, figures in drafters.items()
    }


def _ratios(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figures[name] for name in BENCH_FIGURES if name in figures}
