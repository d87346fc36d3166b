"""Costs from measured answers, and forecasts made of them held against what was measured.

One line of costs serves all of headstart's methods in a workload: what a pass takes, what a draft
adds to it. Only how far drafts survive is a method's own. So a forecast can be wrong, and says by
how much. vLLM's own drafters run another engine loop, and have a line each.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.bench.methods import TIMED
from headstart.bench.result import BARE, BenchResult
from headstart.bench.sample import Sample
from headstart.planner.costs import Costs
from headstart.planner.forecast import break_even_accepted, passes_after_first
from headstart.planner.survival import Survival


@dataclass(frozen=True, slots=True)
class ForecastCheck:
    """One method in one workload: median wall time, and what the cost model says of it."""

    workload: str
    method: str
    measured_s: float
    forecast_s: float
    forecast_speedup: float
    break_even: float | None
    """Accepted tokens a draft from which on drafting pays here; None where nothing was drafted."""

    @property
    def error(self) -> float:
        """The forecast's, as a share of the measured time."""
        return self.forecast_s / self.measured_s - 1.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "error": self.error}


def plain_costs(bare: Sequence[Sample]) -> Costs:
    """Of bare vLLM: the prompt, and a step of it."""
    long = [sample for sample in bare if sample.num_tokens > 1]
    steps = [(s.end_to_end_s - s.first_token_s) / (s.num_tokens - 1) for s in long]
    return Costs(
        prefill_s=median(sample.first_token_s for sample in bare),
        step_s=median(steps) if steps else 1e-6,
    )


def drafting_costs(bare: Sequence[Sample], ours: Sequence[Sample]) -> Costs:
    """Of headstart's engine, from answers of all its methods: steps, drafts, and the first token.

    Least squares over what came after the first token, none of the costs below zero.
    """
    plain = plain_costs(bare)
    rows = [
        (s.num_passes - 1, len(s.drafted) - bool(s.first_drafted), sum(s.drafted) - s.first_drafted)
        for s in ours
    ]
    seconds = np.array([s.end_to_end_s - s.first_token_s for s in ours])
    step_s, pass_s, token_s = _least_squares(np.array(rows, dtype=np.float64), seconds)
    before = [s.first_token_s - token_s * s.first_drafted for s in ours]
    return Costs(
        prefill_s=plain.prefill_s,
        step_s=step_s or plain.step_s,
        verify_token_s=token_s,
        verify_pass_s=pass_s,
        overhead_s=median(before) - plain.prefill_s,
    )


def survival_of(samples: Sequence[Sample]) -> tuple[Survival, Survival]:
    """Of the drafts verified with the prompt, and of the later ones."""
    first = [sample.accepted[0] for sample in samples if sample.accepted]
    # An answer's last pass accepts no more than was left to say: not what a draft is worth.
    later = [count for sample in samples for count in sample.accepted[1:-1]]
    if not later:
        later = [count for sample in samples for count in sample.accepted[1:]]
    return _survival(first), _survival(later)


def check_forecasts(result: BenchResult) -> list[ForecastCheck]:
    """Every method of every workload, bare vLLM first."""
    checks = []
    for workload in dict.fromkeys(name for name, _ in result.measured()):
        bare = result.settled(workload, BARE)
        plain = plain_costs(bare)
        names = [method for name, method in result.measured() if name == workload]
        families: dict[str, list[Sample]] = {}
        for name in names:
            families.setdefault(_family(name), []).extend(result.settled(workload, name))
        nobody = Survival()
        alone_s = _forecast_s(plain, bare, nobody, nobody)
        measured = median(sample.end_to_end_s for sample in bare)
        checks.append(ForecastCheck(workload, BARE, measured, alone_s, 1.0, None))
        for name in names:
            samples = result.settled(workload, name)
            costs = drafting_costs(bare, families[_family(name)])
            lengths = [length for sample in samples for length in sample.drafted]
            first, later = survival_of(samples)
            forecast_s = _forecast_s(costs, samples, first, later)
            checks.append(
                ForecastCheck(
                    workload,
                    name,
                    median(sample.end_to_end_s for sample in samples),
                    forecast_s,
                    alone_s / forecast_s,
                    break_even_accepted(costs, round(median(lengths))) if lengths else None,
                )
            )
    return checks


def _family(method: str) -> str:
    alone = method == TIMED or method.startswith(BARE) or method.endswith("(vLLM)")
    return method if alone else "headstart"


def _forecast_s(costs: Costs, samples: Sequence[Sample], first: Survival, later: Survival) -> float:
    """The median over the answers' own lengths; each pass is priced as an average one."""
    num_later = sum(sample.num_passes - 1 for sample in samples) or 1
    tokens = sum(sum(s.drafted) - s.first_drafted for s in samples) / num_later
    share = sum(len(s.drafted) - bool(s.first_drafted) for s in samples) / num_later
    pass_s = costs.step_s + costs.verify_pass_s * share + costs.verify_token_s * tokens
    fused = sum(sample.first_drafted for sample in samples) / len(samples)
    first_s = costs.prefill_s + costs.overhead_s + costs.verify_token_s * fused
    seconds = {
        length: first_s + pass_s * passes_after_first(length, later, first)
        for length in {sample.num_tokens for sample in samples}
    }
    return median(seconds[sample.num_tokens] for sample in samples)


def _survival(accepted: Sequence[int]) -> Survival:
    histogram = [0] * (max(accepted, default=0) + 1)
    for count in accepted:
        histogram[count] += 1
    return Survival.of_histogram(histogram)


def _least_squares(
    rows: NDArray[np.float64], seconds: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Coefficients of steps, drafted passes and drafted tokens; those below zero are left out."""
    kept = [column for column in range(rows.shape[1]) if rows[:, column].any()]
    while kept:
        found, *_ = np.linalg.lstsq(rows[:, kept], seconds, rcond=None)
        below = [column for column, value in zip(kept, found, strict=True) if value < 0]
        if not below:
            costs = dict(zip(kept, map(float, found), strict=True))
            return costs.get(0, 0.0), costs.get(1, 0.0), costs.get(2, 0.0)
        kept.remove(below[-1])
    return 0.0, 0.0, 0.0
