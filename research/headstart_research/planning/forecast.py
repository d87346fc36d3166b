"""Forecasts how long an answer takes: survival gives the number of passes, costs their time."""

from dataclasses import dataclass

from headstart.errors import PlanningError
from headstart_research.planning.costs import Costs
from headstart_research.planning.survival import Survival


@dataclass(frozen=True, slots=True)
class Forecast:
    """The times and passes of one answer."""

    first_token_s: float
    end_to_end_s: float
    num_passes: float
    """Passes of the target, including the one that ends the prompt."""

    def speedup_over(self, bare: "Forecast") -> float:
        """How many times faster this is than ``bare``."""
        return bare.end_to_end_s / self.end_to_end_s


def bare(costs: Costs, num_tokens: int, batch: int = 1) -> Forecast:
    """Forecast the target alone: every pass yields one token."""
    _require_tokens(num_tokens)
    decode_s = (num_tokens - 1) * costs.pass_s(0, batch)
    return Forecast(costs.prefill_s, costs.prefill_s + decode_s, num_tokens)


def drafted(
    costs: Costs,
    num_tokens: int,
    survival: Survival,
    *,
    first: Survival | None = None,
    batch: int = 1,
) -> Forecast:
    """Forecast drafts at every pass; ``first`` is the survival of the draft with the prompt.

    Without ``first`` no draft is verified with the prompt. Drafts never bring the first token
    sooner, only the tokens after it.
    """
    _require_tokens(num_tokens)
    length = len(survival.shares)
    later = passes_after_first(num_tokens, survival, first)
    first_token_s = costs.prefill_s + costs.overhead_s
    if first is not None:
        first_token_s += costs.pass_s(len(first.shares), batch) - costs.pass_s(0, batch)
    end_s = first_token_s + later * costs.pass_s(length, batch)
    return Forecast(first_token_s, end_s, 1.0 + later)


def passes_after_first(num_tokens: int, survival: Survival, first: Survival | None = None) -> float:
    """How many passes follow the one that ends the prompt and verifies the ``first`` draft."""
    return sum(
        chance * survival.passes_for(num_tokens - 1 - accepted)
        for accepted, chance in enumerate((first or Survival()).chances())
    )


def break_even_accepted(costs: Costs, draft_tokens: int, batch: int = 1) -> float:
    """How many tokens of each draft must be accepted for drafting to save what it costs."""
    plain = costs.pass_s(0, batch)
    return (costs.pass_s(draft_tokens, batch) - plain) / plain


def _require_tokens(num_tokens: int) -> None:
    if num_tokens < 1:
        raise PlanningError(f"an answer of {num_tokens} tokens: give at least 1")
