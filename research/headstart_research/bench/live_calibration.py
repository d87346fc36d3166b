"""The costs of a live camera's answers, estimated from a bench's live workload."""

from dataclasses import dataclass, replace
from statistics import fmean, median

from headstart.errors import PlanningError
from headstart_research.bench.calibration import at_pace, drafting_costs, paces, survival_of
from headstart_research.bench.methods import FED, LIVE_OWN
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.planning.costs import Costs
from headstart_research.planning.survival import Survival


@dataclass(frozen=True, slots=True)
class LiveCalibration:
    """What an engine's work on a live window costs, and what its drafts are worth."""

    costs: Costs
    feed_s: float
    first: Survival
    """Of the draft that is verified with the prompt."""
    later: Survival
    num_tokens: int
    num_prompt_tokens: int


def live_calibration(result: BenchResult) -> LiveCalibration:
    """Estimate from bare vLLM, from frames fed without drafts, and from both.

    Drafts are those of a camera's own memory: a camera of a fleet may be the only one of its site.
    """
    for workload in result.live:
        methods = (FED, LIVE_OWN)
        if all(result.settled(workload, method) for method in methods):
            pace = paces(result, workload, methods)
            bare, fed, drafted = (
                [
                    sample
                    for beside in methods
                    for sample in at_pace(
                        result.settled(workload, method, beside), 1 / pace[beside]
                    )
                ]
                for method in (BARE, *methods)
            )
            costs = drafting_costs(bare, [*fed, *drafted])
            # One camera at a time was measured. In a pass a further request is a row of the
            # computation, as a drafted token is.
            costs = replace(costs, request_s=costs.verify_token_s)
            first_s = median(sample.first_token_s for sample in fed)
            return LiveCalibration(
                costs,
                max(1e-6, first_s - costs.step_s),
                *survival_of(drafted),
                round(fmean(sample.num_tokens for sample in bare)),
                round(fmean(sample.num_prompt_tokens for sample in bare)),
            )
    raise PlanningError(
        f"the bench has no live workload with {FED!r} and {LIVE_OWN!r}: measure them with"
        f" `headstart bench --workload live --method {FED} --method '{LIVE_OWN}'`"
    )
