"""Estimates costs from measured answers, forecasts those answers, and compares the two.

All of headstart's methods in a workload share one estimate of what a pass and a draft cost. A
method has only its own survival of drafts, and its own pace of the machine, taken from bare vLLM's
answers beside it. So the forecast of a method can be wrong, and the comparison shows by how much.
vLLM's own drafters run another engine loop and have an estimate each.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart_research.bench.methods import TIMED
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.sample import Sample
from headstart_research.planning.costs import Costs
from headstart_research.planning.forecast import break_even_accepted, passes_after_first
from headstart_research.planning.survival import Survival


@dataclass(frozen=True, slots=True)
class ForecastCheck:
    """One method in one workload: its measured mean time and the forecast of it."""

    workload: str
    method: str
    measured_s: float
    forecast_s: float
    forecast_speedup: float
    break_even: float | None
    """Accepted tokens a draft above which drafting pays; None where nothing was drafted."""

    @property
    def error(self) -> float:
        """The forecast's error, as a share of the measured time."""
        return self.forecast_s / self.measured_s - 1.0

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "error": self.error}


def plain_costs(bare: Sequence[Sample]) -> Costs:
    """Estimate the prefill and the step of bare vLLM."""
    num_steps = sum(sample.num_tokens - 1 for sample in bare)
    decoding_s = sum(sample.end_to_end_s - sample.first_token_s for sample in bare)
    return Costs(
        prefill_s=fmean(sample.first_token_s for sample in bare),
        step_s=decoding_s / num_steps if num_steps else 1e-6,
    )


def drafting_costs(bare: Sequence[Sample], ours: Sequence[Sample]) -> Costs:
    """Estimate the costs of headstart's engine from the answers of all its methods.

    The costs of steps and drafts are least squares over the time after the first token, none of
    them below zero.
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
        overhead_s=fmean(before) - plain.prefill_s,
    )


def survival_of(samples: Sequence[Sample]) -> tuple[Survival, Survival]:
    """The survival of the drafts verified with the prompt, and of the later ones."""
    first: list[tuple[int, bool]] = []
    later: list[tuple[int, bool]] = []
    for sample in samples:
        last = len(sample.accepted) - 1
        for number, accepted in enumerate(sample.accepted):
            (later if number else first).append((accepted, number < last))
    return Survival.of_passes(first), Survival.of_passes(later)


def check_forecasts(result: BenchResult) -> list[ForecastCheck]:
    """Check every method of every workload, bare vLLM first.

    Open loads are left out: their answers wait in a queue, of which the costs say nothing.
    """
    checks = []
    for workload in dict.fromkeys(name for name, _ in result.measured()):
        if workload in result.rates:
            continue
        names = [method for name, method in result.measured() if name == workload]
        pace = paces(result, workload, names)
        bare = [
            sample
            for name in names
            for sample in at_pace(result.settled(workload, BARE, name), 1 / pace[name])
        ]
        ours = {name: at_pace(result.settled(workload, name), 1 / pace[name]) for name in names}
        families: dict[str, list[Sample]] = {}
        for name in names:
            families.setdefault(_family(name), []).extend(ours[name])
        undrafted = Survival()
        alone_s = _forecast_s(plain_costs(bare), bare, undrafted, undrafted)
        measured_s = _mean_s(bare)
        checks.append(ForecastCheck(workload, BARE, measured_s, alone_s, 1.0, None))
        for name in names:
            costs = drafting_costs(bare, families[_family(name)])
            lengths = [length for sample in ours[name] for length in sample.drafted]
            forecast_s = _forecast_s(costs, ours[name], *survival_of(ours[name]))
            checks.append(
                ForecastCheck(
                    workload,
                    name,
                    _mean_s(ours[name]) * pace[name],
                    forecast_s * pace[name],
                    alone_s / forecast_s,
                    break_even_accepted(costs, round(median(lengths))) if lengths else None,
                )
            )
    return checks


def paces(result: BenchResult, workload: str, names: Sequence[str]) -> dict[str, float]:
    """How slow the machine was beside each method: bare vLLM's mean time then over its mean time.

    Methods are measured one after another, and other load of the machine changes meanwhile.
    """
    usual_s = _mean_s(result.settled(workload, BARE))
    return {name: _mean_s(result.settled(workload, BARE, name)) / usual_s for name in names}


def _mean_s(samples: Sequence[Sample]) -> float:
    return fmean(sample.end_to_end_s for sample in samples)


def at_pace(samples: Sequence[Sample], pace: float) -> list[Sample]:
    """The same answers, taking so many times as long."""
    return [
        replace(s, end_to_end_s=s.end_to_end_s * pace, first_token_s=s.first_token_s * pace)
        for s in samples
    ]


def _family(method: str) -> str:
    alone = method == TIMED or method.startswith(BARE) or method.endswith("(vLLM)")
    return method if alone else "headstart"


def _forecast_s(costs: Costs, samples: Sequence[Sample], first: Survival, later: Survival) -> float:
    """Forecast the mean time of answers of these lengths, at the cost of an average pass."""
    num_later = sum(sample.num_passes - 1 for sample in samples) or 1
    tokens = sum(sum(s.drafted) - s.first_drafted for s in samples) / num_later
    share = sum(len(s.drafted) - bool(s.first_drafted) for s in samples) / num_later
    pass_s = costs.step_s + costs.verify_pass_s * share + costs.verify_token_s * tokens
    fused = fmean(sample.first_drafted for sample in samples)
    first_s = costs.prefill_s + costs.overhead_s + costs.verify_token_s * fused
    lengths = Counter(sample.num_tokens for sample in samples)
    return fmean(
        (first_s + pass_s * passes_after_first(length, later, first) for length in lengths),
        weights=lengths.values(),
    )


def _least_squares(
    rows: NDArray[np.float64], seconds: NDArray[np.float64]
) -> tuple[float, float, float]:
    """The costs of a step, a drafted pass and a drafted token; 0 for those that come out below."""
    kept = [column for column in range(rows.shape[1]) if rows[:, column].any()]
    while kept:
        found, *_ = np.linalg.lstsq(rows[:, kept], seconds, rcond=None)
        below = [column for column, value in zip(kept, found, strict=True) if value < 0]
        if not below:
            costs = dict(zip(kept, map(float, found), strict=True))
            return costs.get(0, 0.0), costs.get(1, 0.0), costs.get(2, 0.0)
        kept.remove(below[-1])
    return 0.0, 0.0, 0.0
