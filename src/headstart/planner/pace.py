"""What a pass of the running engine costs, learnt from passes that were timed anyway.

By the size of the batch, because what is free to verify for one request is not for sixteen.
Timed passes without a draft give the plain step; those with drafts a straight line over the
drafted tokens. Old figures fade, so a machine that becomes busy is believed.
"""

from dataclasses import dataclass, field

FADE = 0.97  # of what is known, with each further pass: the last 30 or so count
PRIOR_TOKEN_SHARE = 0.02  # of a plain step, for a drafted token nobody has timed yet
PRIOR_WEIGHT = 512.0  # squared tokens: the line is believed once drafts have varied by more
IDLE_FADE = 0.999  # of what drafts cost, with each pass without any: prices grow old
ENOUGH = 3.0  # passes: fewer are no figure
OUTLIER = 4.0  # times the usual: a pass that was interrupted, and says nothing of its work


@dataclass(frozen=True, slots=True)
class PassCost:
    """Of one size of batch, in seconds."""

    step_s: float
    """A pass without drafts."""
    drafting_s: float
    """More, because anything was drafted at all."""
    token_s: float
    """More, for each drafted token."""


@dataclass(slots=True)
class _Line:
    """A faded straight line through (drafted tokens, seconds)."""

    weight: float = 0.0
    mean_tokens: float = 0.0
    mean_s: float = 0.0
    var: float = 0.0  # weighted sums of squares and products around the means
    cov: float = 0.0

    def fade(self, share: float) -> None:
        self.weight *= share
        self.var *= share
        self.cov *= share

    def add(self, tokens: float, seconds: float) -> None:
        self.fade(FADE)
        self.weight += 1.0
        off_tokens, off_s = tokens - self.mean_tokens, seconds - self.mean_s
        self.mean_tokens += off_tokens / self.weight
        self.mean_s += off_s / self.weight
        self.var += off_tokens * (tokens - self.mean_tokens)
        self.cov += off_tokens * (seconds - self.mean_s)


@dataclass(slots=True)
class _Batch:
    plain: _Line = field(default_factory=_Line)
    drafted: _Line = field(default_factory=_Line)

    def cost(self) -> PassCost | None:
        plain, drafted = self.plain, self.drafted
        if not plain.weight and not drafted.weight:
            return None
        if not drafted.weight:
            return PassCost(plain.mean_s, 0.0, PRIOR_TOKEN_SHARE * plain.mean_s)
        if not plain.weight:
            return PassCost(drafted.mean_s, 0.0, PRIOR_TOKEN_SHARE * drafted.mean_s)
        # Until drafts of several lengths were timed, all they cost more is put down to their
        # tokens.
        chord = (drafted.mean_s - plain.mean_s) / drafted.mean_tokens
        slope = (drafted.cov + PRIOR_WEIGHT * chord) / (drafted.var + PRIOR_WEIGHT)
        slope = max(0.0, slope)
        start_s = drafted.mean_s - slope * drafted.mean_tokens
        return PassCost(plain.mean_s, max(0.0, start_s - plain.mean_s), slope)


class Pace:
    """The costs of passes, by batch size in powers of two. Not thread-safe."""

    def __init__(self) -> None:
        self._batches: dict[int, _Batch] = {}

    def observe(self, batch: int, drafted_tokens: int, seconds: float) -> None:
        """A pass that decoded a batch, no prompt among it, with so many drafted tokens in all."""
        known = self._batches.setdefault(_size(batch), _Batch())
        line = known.drafted if drafted_tokens else known.plain
        if not drafted_tokens:
            known.drafted.fade(IDLE_FADE)
        usual_s = line.mean_s if line.weight > ENOUGH else None
        line.add(drafted_tokens, min(seconds, OUTLIER * usual_s) if usual_s else seconds)

    def cost(self, batch: int) -> PassCost | None:
        """Of a batch of this size; nothing where none like it was timed."""
        known = self._batches.get(_size(batch))
        return known.cost() if known else None

    def knows_plain(self, batch: int) -> bool:
        """Whether enough passes without a draft were timed to compare with."""
        known = self._batches.get(_size(batch))
        return known is not None and known.plain.weight > ENOUGH


def _size(batch: int) -> int:
    return max(1, batch).bit_length()
