"""What a pass of the running engine costs, learnt from timed passes.

Costs are kept by batch size: verifying a token may be free for one request and not for sixteen.
Passes without a draft give the cost of a plain step; those with drafts give a straight line over
the drafted tokens. What a pass with prompts takes beyond that is the prompts' cost. Old
measurements fade, so the costs follow a machine that becomes busy.
"""

from dataclasses import dataclass, field

FADE = 0.97  # of what is known, with each further pass: the last 30 or so count
PRIOR_TOKEN_SHARE = 0.02  # of a plain step, for a drafted token, before any was timed
PRIOR_WEIGHT = 512.0  # squared tokens: the line is believed once drafts have varied by more
IDLE_FADE = 0.999  # of what drafts cost, with each pass without any: prices grow old
ENOUGH = 4  # passes without a draft: fewer are no figure
ENOUGH_DRAFTED = 24  # passes with one: a price is believed later, since it can end drafting
OUTLIER = 4.0  # times the usual: a pass that was interrupted, or an engine that was warming up


@dataclass(frozen=True, slots=True)
class PassCost:
    """Of one size of batch, in seconds."""

    step_s: float
    """A pass without drafts."""
    drafting_s: float
    """Added where anything is drafted at all."""
    token_s: float
    """Added for each drafted token."""


@dataclass(slots=True)
class _Line:
    """A faded straight line through (drafted tokens, seconds)."""

    enough: int
    num_passes: int = 0
    weight: float = 0.0
    mean_tokens: float = 0.0
    mean_s: float = 0.0
    var: float = 0.0  # weighted sums of squares and products around the means
    cov: float = 0.0

    @property
    def is_known(self) -> bool:
        return self.num_passes >= self.enough

    def fade(self, share: float) -> None:
        self.weight *= share
        self.var *= share
        self.cov *= share

    def add(self, tokens: float, seconds: float) -> None:
        if self.num_passes:
            seconds = min(seconds, OUTLIER * self.mean_s)
            if not self.is_known and seconds * OUTLIER < self.mean_s:
                self.fade(0.0)  # the first ones were of an engine still warming up
        self.num_passes += 1
        self.fade(FADE)
        self.weight += 1.0
        off_tokens, off_s = tokens - self.mean_tokens, seconds - self.mean_s
        self.mean_tokens += off_tokens / self.weight
        self.mean_s += off_s / self.weight
        self.var += off_tokens * (tokens - self.mean_tokens)
        self.cov += off_tokens * (seconds - self.mean_s)


@dataclass(slots=True)
class _Batch:
    plain: _Line = field(default_factory=lambda: _Line(ENOUGH))
    drafted: _Line = field(default_factory=lambda: _Line(ENOUGH_DRAFTED))

    def cost(self) -> PassCost | None:
        plain, drafted = self.plain, self.drafted
        if not plain.num_passes and not drafted.num_passes:
            return None
        step_s = plain.mean_s if plain.num_passes else drafted.mean_s
        if not plain.num_passes or not drafted.is_known:
            return PassCost(step_s, 0.0, PRIOR_TOKEN_SHARE * step_s)
        # Until drafts of several lengths were timed, all they cost more is put down to their
        # tokens.
        chord = (drafted.mean_s - step_s) / drafted.mean_tokens
        slope = (drafted.cov + PRIOR_WEIGHT * chord) / (drafted.var + PRIOR_WEIGHT)
        slope = max(0.0, slope)
        start_s = drafted.mean_s - slope * drafted.mean_tokens
        return PassCost(step_s, max(0.0, start_s - step_s), slope)


class PassCosts:
    """The costs of passes, by batch size in powers of two. Not thread-safe."""

    def __init__(self) -> None:
        self._batches: dict[int, _Batch] = {}
        self._prompts = _Line(ENOUGH)
        self.prompts_s = 0.0
        """How long a pass of these days computes prompts, beside the answers in it."""

    @property
    def prompt_token_s(self) -> float | None:
        """What a token of a prompt costs, pictures included; nothing until some were timed."""
        prompts = self._prompts
        return prompts.mean_s / prompts.mean_tokens if prompts.is_known else None

    def observe_prompts(
        self, batch: int, drafted_tokens: int, prompt_tokens: int, seconds: float
    ) -> float:
        """A pass that computed prompts beside a batch, which may be empty.

        Returns how many of the seconds the prompts took.
        """
        cost = self.cost(batch) if batch else None
        if cost is not None:
            own_s = cost.step_s + cost.token_s * drafted_tokens
            own_s += cost.drafting_s if drafted_tokens else 0.0
        else:
            own_tokens = batch + drafted_tokens
            own_s = seconds * own_tokens / (own_tokens + prompt_tokens)
        prompts_s = max(0.0, seconds - own_s)
        if (token_s := self.prompt_token_s) is not None:
            prompts_s = min(prompts_s, OUTLIER * token_s * prompt_tokens)
        self._prompts.add(prompt_tokens, prompts_s)
        if batch:
            self.prompts_s += (1.0 - FADE) * (prompts_s - self.prompts_s)
        return prompts_s

    def observe(self, batch: int, drafted_tokens: int, seconds: float) -> None:
        """A pass that decoded a batch, no prompt among it, with so many drafted tokens in all."""
        self.prompts_s *= FADE
        known = self._batches.setdefault(_size(batch), _Batch())
        if drafted_tokens:
            known.drafted.add(drafted_tokens, seconds)
        else:
            known.plain.add(0, seconds)
            known.drafted.fade(IDLE_FADE)

    def cost(self, batch: int) -> PassCost | None:
        """Of a batch of this size; nothing where none like it was timed."""
        known = self._batches.get(_size(batch))
        return known.cost() if known else None

    def knows_plain(self, batch: int) -> bool:
        """Whether enough passes without a draft were timed to compare with."""
        known = self._batches.get(_size(batch))
        return known is not None and known.plain.is_known


def _size(batch: int) -> int:
    return max(1, batch).bit_length()
