"""The draft budget: at every pass, how many tokens of a draft are worth their verification.

A drafted token that is accepted saves the engine one request's share of a step; verifying it
costs every request of the batch the same wait. So a token is paid for while

    survival x step / batch  >  cost of a drafted token

and a draft only if all its tokens together also earn what drafting costs a pass at all. One
request on a waiting machine drafts far; sixteen on a busy one draft little or nothing; a source
that is always wrong is not listened to anywhere.
"""

from collections.abc import Hashable

from headstart.speculation.earnings import Earnings
from headstart.speculation.pass_costs import PRIOR_TOKEN_SHARE, PassCost, PassCosts

MIN_EARNED = 0.05  # tokens a draft: below this even a free pass is not worth asking for
PLAIN_EVERY = 128  # drafted passes: then one goes without, or nothing is left to compare with
PLAIN_EARLY = 8  # the same while passes without are hardly known
PROBE_SHARE = 0.005  # of the time of held-back passes, spent on looking at the price again
PROBE_TOKENS = 4
_UNTIMED = PassCost(1.0, 0.0, PRIOR_TOKEN_SHARE)


class DraftBudget:
    """Decides from what was earned and what passes cost. Not thread-safe; no clock of its own.

    A pass of the engine is framed by `pass_begins` and `pass_ended`; between them each request
    of the batch asks for its `draft_length`.
    """

    def __init__(self, costs: PassCosts | None = None, earnings: Earnings | None = None) -> None:
        self.costs = costs or PassCosts()
        self.earnings = earnings or Earnings()
        self._batch = 1
        self._cost = _UNTIMED
        self._plain = False
        self._since_plain: dict[int, int] = {}
        self._saved_s: dict[int, float] = {}

    def pass_begins(self, batch: int) -> None:
        """The next questions are about a pass of so many requests."""
        self._batch = max(1, batch)
        self._cost = self.costs.cost(self._batch) or _UNTIMED
        known = self.costs.knows_plain(self._batch)
        since_plain = self._since_plain.get(self._batch, 0)
        self._plain = since_plain >= (PLAIN_EVERY if known else PLAIN_EARLY)

    def pass_ended(self, drafted_tokens: int, seconds: float) -> None:
        """It only decoded, so many tokens of it drafted, and took so long."""
        self.costs.observe(self._batch, drafted_tokens, seconds)
        before = self._since_plain.get(self._batch, 0)
        self._since_plain[self._batch] = before + 1 if drafted_tokens else 0

    def draft_length(self, source: str, stream: Hashable, max_tokens: int) -> int:
        """How many tokens of a draft by this source to pay for now; 0 is to abstain."""
        if max_tokens < 1 or self._plain:
            return 0
        shares = self.earnings.survival(source, stream).shares[:max_tokens]
        if sum(shares) < MIN_EARNED:
            # Whether it gets better is seen without paying: answers judge what was not heard.
            return 0
        batch, cost = self._batch, self._cost
        worth_s = cost.step_s / batch
        length, net_s = 0, -cost.drafting_s / batch
        for share in shares:
            gain_s = share * worth_s - cost.token_s
            if gain_s <= 0:
                break
            length += 1
            net_s += gain_s
        return length if net_s > 0 else self._probe(max_tokens)

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
