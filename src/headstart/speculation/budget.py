"""The draft budget: at every pass, how many tokens of a draft are worth their verification.

A drafted token that is accepted saves its request the wait for a pass: the step, and the prompts
of others computed in it. Verifying it costs every request of the batch the same wait. So a token is
paid for while

    survival x (step + prompts) / batch  >  cost of a drafted token

and a draft only if all its tokens together also earn what drafting costs a pass at all. One
request on a waiting machine drafts far; sixteen on a busy one draft little or nothing; a source
that is always wrong is not listened to anywhere.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import neg

from headstart.speculation.pass_costs import PRIOR_TOKEN_SHARE, PassCost, PassCosts

MIN_EARNED = 0.05  # tokens a draft: below this even a free pass is not worth asking for
PLAIN_EVERY = 128  # drafted passes: then one goes without, or nothing is left to compare with
PLAIN_EARLY = 8  # the same while passes without are hardly known
PROBE_SHARE = 0.005  # of the time of held-back passes, spent on looking at the price again
PROBE_TOKENS = 4
_UNTIMED = PassCost(1.0, 0.0, PRIOR_TOKEN_SHARE)


class DraftBudget:
    """Decides from what passes cost. Not thread-safe; no clock of its own.

    A pass of the engine is framed by `pass_begins` and `pass_ended`; between them each request
    of the batch asks for its `draft_length`, and says what it takes with `spend`. Where the device
    computes certain numbers of tokens only, ``padded_sizes`` are these, in order.
    """

    def __init__(self, costs: PassCosts | None = None, padded_sizes: Sequence[int] = ()) -> None:
        self.costs = costs or PassCosts()
        self._padded_sizes = padded_sizes
        self._batch = 1
        self._tokens = 1
        self._cost = _UNTIMED
        self._plain = False
        self._since_plain: dict[int, int] = {}
        self._saved_s: dict[int, float] = {}

    def pass_begins(self, batch: int, num_resting: int = 0) -> None:
        """The next questions are about a pass of so many requests; some are not asked about."""
        self._batch = self._tokens = max(1, batch)
        self._cost = self.costs.cost(self._batch) or _UNTIMED
        if num_resting:
            saved_s = num_resting * PROBE_SHARE * self._cost.step_s / self._batch
            self._saved_s[self._batch] = self._saved_s.get(self._batch, 0.0) + saved_s
        known = self.costs.knows_plain(self._batch)
        since_plain = self._since_plain.get(self._batch, 0)
        self._plain = since_plain >= (PLAIN_EVERY if known else PLAIN_EARLY)

    def pass_ended(self, drafted_tokens: int, seconds: float) -> None:
        """It only decoded, so many tokens of it drafted, and took so long."""
        # A draft that fits into the padding takes a token's price at least: it was drafted.
        added = self._computed(self._batch + drafted_tokens) - self._computed(self._batch)
        self.costs.observe(self._batch, max(added, 1) if drafted_tokens else 0, seconds)
        before = self._since_plain.get(self._batch, 0)
        self._since_plain[self._batch] = before + 1 if drafted_tokens else 0

    @property
    def is_usual(self) -> bool:
        """Whether it would decide the same in the next pass.

        Not in one that goes without drafts for comparison, nor after others' drafts have filled
        what is padded.
        """
        return not self._plain and not (self._padded_sizes and self._tokens > self._batch)

    @property
    def token_worth_s(self) -> float | None:
        """How long an accepted token is not waited for, shared by the batch; None if unknown."""
        if self._cost is _UNTIMED:
            return None
        return (self._cost.step_s + self.costs.prompts_s) / self._batch

    def draft_length(
        self, survival: Sequence[float], max_tokens: int, *, with_prompt: bool = False
    ) -> int:
        """How many tokens of a draft to pay for now; 0 is to abstain.

        ``survival`` is the chance that the draft is right up to each of its tokens. A pass that
        also computes the request's prompt is compared with no other, so it is never the one that
        goes without a draft for comparison.
        """
        if max_tokens < 1 or (self._plain and not with_prompt):
            return 0
        # Shares fall, and the first alone is mostly enough: this is asked twice a request and pass.
        if not survival or (survival[0] < MIN_EARNED and sum(survival[:max_tokens]) < MIN_EARNED):
            # Whether it gets better is seen without paying: answers judge what was not heard.
            return 0
        batch, cost = self._batch, self._cost
        worth_s = (cost.step_s + self.costs.prompts_s) / batch
        computed, drafting_s = self._computed(self._tokens), cost.drafting_s / batch
        most, length, most_s = min(len(survival), max_tokens), 0, 0.0
        for tokens in self._lengths(survival, most, cost.token_s / worth_s):
            price_s = cost.token_s * (self._computed(self._tokens + tokens) - computed)
            net_s = sum(survival[:tokens]) * worth_s - price_s - drafting_s
            if net_s > most_s:
                length, most_s = tokens, net_s
        return length or self._probe(max_tokens)

    def _lengths(self, shares: Sequence[float], most: int, threshold: float) -> Sequence[int]:
        """Of a draft of at most so many tokens, the lengths that may pay best.

        Shares fall, so it pays up to the last that is above the threshold. Where tokens are padded,
        the best length fills up a size.
        """
        if not self._padded_sizes:
            return (bisect_left(shares, -threshold, 0, most, key=neg),)
        filling = (size - self._tokens for size in self._padded_sizes)
        return [*(tokens for tokens in filling if 0 < tokens < most), most]

    def spend(self, num_tokens: int) -> None:
        self._tokens += num_tokens

    def _computed(self, num_tokens: int) -> int:
        if not self._padded_sizes:
            return num_tokens
        place = bisect_left(self._padded_sizes, num_tokens)
        in_graph = place < len(self._padded_sizes)
        return self._padded_sizes[place] if in_graph else num_tokens

    def _probe(self, max_tokens: int) -> int:
        """A short draft now and then, where drafting has become too expensive.

        The price may have been that of a busy moment, and only a drafted pass shows the price
        again. Every pass without a draft saves a little time; a probe is paid from what was saved.
        """
        cost, length = self._cost, min(PROBE_TOKENS, max_tokens)
        saved_s = self._saved_s.get(self._batch, 0.0) + PROBE_SHARE * cost.step_s / self._batch
        price_s = cost.drafting_s + cost.token_s * length
        affordable = saved_s >= price_s
        self._saved_s[self._batch] = 0.0 if affordable else saved_s
        return length if affordable else 0
