"""Which requests keep drafts back, from everybody in the batch or from themselves."""

from dataclasses import dataclass
from functools import cache
from typing import Self

from vllm import SamplingParams


@cache
def verifies_sampled() -> bool:
    """Whether drafts leave the law of sampled answers as it is; tried once, on a few numbers.

    Greedy answers are verified by comparing tokens, which works everywhere. For sampled ones vLLM
    0.32 spreads each request's temperature over its drafted tokens; on a CPU its kernel writes them
    into a copy, and what is sampled then follows another law than the target's.
    """
    import torch
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return True  # the kernel that goes wrong is the CPU's own
    from vllm.utils import cpu_triton_utils

    current_platform.import_kernels()
    spread = torch.zeros(3)
    temperatures, ends = torch.tensor([0.5, 2.0]), torch.tensor([2, 3], dtype=torch.int32)
    cpu_triton_utils._expand_kernel_impl(spread, temperatures, ends, 0, 0)
    return bool(torch.equal(spread, torch.tensor([0.5, 0.5, 2.0])))


@dataclass(frozen=True, slots=True)
class Withheld:
    """What one request asks for that vLLM 0.32 does not answer the same with drafts."""

    samples: bool = False
    """Where drafts of sampled answers are not verified rightly. Keeps drafts back from all."""
    from_all: bool = False
    from_itself: bool = False

    @classmethod
    def of(cls, params: SamplingParams | None, *, verifies_sampled: bool) -> Self:
        if params is None:
            return cls(from_itself=True)  # not shown to be the same with drafts
        samples = params.temperature > 0 and not verifies_sampled
        # vLLM counts thinking by what a step began with: thinking that begins, ends or goes on
        # within the step's drafts is cut short or goes on too long.
        is_budgeted = params.thinking_token_budget is not None
        # Where drafts are verified vLLM asks for all tokens' logprobs and gets the named ones': the
        # engine ends, or others get logprobs of another place.
        is_named = params.logprob_token_ids is not None
        is_unproven = params.prompt_logprobs is not None
        return cls(samples, samples or is_budgeted or is_named, is_unproven)


class WithheldDrafts:
    """How many of the requests alive keep drafts back from all: the batch is verified as one."""

    def __init__(self) -> None:
        self._verifies_sampled = verifies_sampled()
        self._num_sampled = 0
        self._num_from_all = 0

    @property
    def samples(self) -> bool:
        """Whether a request samples where drafts of sampled answers are not verified rightly."""
        return self._num_sampled > 0

    def begin(self, params: SamplingParams | None) -> Withheld:
        """A request has come, or goes on with other settings; `end` what this returns."""
        withheld = Withheld.of(params, verifies_sampled=self._verifies_sampled)
        self._num_sampled += withheld.samples
        self._num_from_all += withheld.from_all
        return withheld

    def withholds(self, withheld: Withheld) -> bool:
        """Whether a request gets no draft in the coming step."""
        return self._num_from_all > 0 or withheld.from_itself

    def end(self, withheld: Withheld) -> None:
        """A request has ended, however it ended."""
        self._num_sampled -= withheld.samples
        self._num_from_all -= withheld.from_all
