"""Which requests keep drafts back, from everybody in the batch or from themselves."""

from vllm import SamplingParams

from headstart.engine.sampling_check import verifies_sampled


class WithheldDrafts:
    """Holds what vLLM 0.32 does not answer the same with drafts, as long as it is asked for.

    A request is known here from its arrival until it ends, however it ends.
    """

    def __init__(self) -> None:
        self._sampled: set[str] = set()
        self._budgeted: set[str] = set()
        self._named: set[str] = set()
        self._unproven: set[str] = set()

    @property
    def samples(self) -> bool:
        """Whether a request samples where drafts of sampled answers are not verified rightly."""
        return bool(self._sampled)

    def begin(self, request_id: str, params: SamplingParams | None) -> None:
        """A request has come, or goes on with other settings."""
        self.forget(request_id)
        if params is None or params.prompt_logprobs is not None:
            self._unproven.add(request_id)  # not shown to be the same with drafts
        if params is None:
            return
        if params.temperature > 0 and not verifies_sampled():
            self._sampled.add(request_id)
        if params.thinking_token_budget is not None:
            # vLLM counts thinking by what a step began with: thinking that begins, ends or goes
            # on within the step's drafts is cut short or goes on too long.
            self._budgeted.add(request_id)
        if params.logprob_token_ids is not None:
            # Where drafts are verified vLLM asks for all tokens' logprobs and gets the named
            # ones': the engine ends, or others get logprobs of another place.
            self._named.add(request_id)

    def withholds(self, request_id: str) -> bool:
        """Whether a request gets no draft in the coming step.

        The batch is verified as one: of those that keep back from all, one request is enough.
        """
        from_all = self._sampled or self._budgeted or self._named
        return bool(from_all) or request_id in self._unproven

    def forget(self, request_id: str) -> None:
        """A request has ended; one that is not known is no error."""
        for held in (self._sampled, self._budgeted, self._named, self._unproven):
            held.discard(request_id)
