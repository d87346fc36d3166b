"""The ranker: drafts from earlier answers, as memory does, by a rule that it learns from them.

Where memory follows the longest match, the ranker looks at many places where the last words were
said before, and a small network chooses between the words that followed there. It learns from each
tenant's own answers, in a thread of its own. Tenants share neither answers nor weights.
"""

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from headstart.drafters.registry import Ingredients, Registration
from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, StreamKey

if TYPE_CHECKING:
    from headstart_research.ranker.tenant import RankedTenant

DEFAULT_MAX_BYTES = 512 << 20


class Ranker:
    """A `Drafter` over the answers of many tenants. Called from one thread.

    Bounded in bytes: a tenant takes 10 MB at most, and of too many the one heard of longest ago is
    forgotten. Unless it is ``warm``, a stream is a tenant of its own.
    """

    name = "ranker"

    def __init__(
        self, max_bytes: int = DEFAULT_MAX_BYTES, *, warm: bool = True, seed: int = 0
    ) -> None:
        try:
            from headstart_research.ranker.tenant import compile_all
            from headstart_research.ranker.training import Training
        except ImportError as error:
            raise DraftingError(
                "the ranker needs numba, which comes with vLLM: pip install numba, or leave the"
                " ranker out"
            ) from error
        compile_all()  # now, for some seconds, or in some step of the engine
        self._max_bytes, self._warm, self._seed = max_bytes, warm, seed
        self._tenants: OrderedDict[tuple[str, str], RankedTenant] = OrderedDict()
        self._requests: dict[str, tuple[StreamKey, str]] = {}
        self._training = Training()
        self.close = weakref.finalize(self, self._training.close)
        """End its thread. It also ends with the ranker, and with the process."""

    @property
    def num_bytes(self) -> int:
        return sum(tenant.num_bytes for tenant in self._tenants.values())

    def begin(self, request: DraftRequest) -> None:
        if request.remembered:
            self._requests[request.id] = (request.stream, request.question)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        asked = self._requests.get(request_id)
        if asked is None or max_tokens < 1:
            return ()
        key, question = asked
        tenant = self._tenants.get(self._owner(key))
        return () if tenant is None else tenant.draft(key.stream, question, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        asked = self._requests.pop(request_id, None)
        if asked is not None and answer:
            key, question = asked
            self._learn(self._owner(key), key.stream, question, answer)

    def seed(self, tenant: str, question: str, answer: Sequence[int]) -> None:
        """Remember an answer of no stream, for all streams of a tenant."""
        if not self._warm:
            raise DraftingError("a ranker that is not warm quotes no log: leave one of them out")
        self._learn((tenant, ""), "", question, answer)

    def forget(self, stream: StreamKey) -> None:
        """Drop a stream's answers, and all of its tenant's: the weights have learnt from both."""
        self._tenants.pop(self._owner(stream), None)

    def forget_tenant(self, tenant: str) -> None:
        for owner in [owner for owner in self._tenants if owner[0] == tenant]:
            del self._tenants[owner]

    def forget_before(self, time_s: float) -> None:
        """Drop whoever was first heard before a time: of single answers no time is known."""
        for owner, tenant in list(self._tenants.items()):
            if tenant.since_s < time_s:
                del self._tenants[owner]

    def settle(self) -> None:
        """Wait until all that was said has been learnt from; for measuring, never in an engine."""
        self._training.settle()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ranker":
        """One that has learnt the same, and learns on in a thread of its own; for measuring."""
        self.settle()
        copied = Ranker(self._max_bytes, warm=self._warm, seed=self._seed)
        copied._tenants = deepcopy(self._tenants, memo)
        copied._requests = dict(self._requests)
        return copied

    def _owner(self, key: StreamKey) -> tuple[str, str]:
        return (key.tenant, "") if self._warm else (key.tenant, key.stream)

    def _learn(
        self, owner: tuple[str, str], stream: str, question: str, answer: Sequence[int]
    ) -> None:
        from headstart_research.ranker.tenant import RankedTenant

        tenant = self._tenants.setdefault(owner, RankedTenant(self._seed))
        self._tenants.move_to_end(owner)
        if tenant.learn(stream, question, answer):
            self._training.ask(tenant.learner)
        while self.num_bytes > self._max_bytes and self._tenants:
            self._tenants.popitem(last=False)


def _built(ingredients: Ingredients, value: str) -> Ranker:
    ranker = Ranker(ingredients.options.limits.total, warm=ingredients.options.warm)
    for answer in ingredients.known_answers():
        ranker.seed(answer.tenant, answer.question, answer.tokens)
    return ranker


REGISTRATION = Registration(
    "ranker",
    "the same answers, by a rule that it learns from them",
    _built,
    trust_less_on_change=True,
)
