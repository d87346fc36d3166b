"""Tokens for a target that is a function: drawn and verified by vLLM's own samplers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from vllm import SamplingParams
from vllm.platforms import current_platform
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.request import Request
from vllm.v1.sample.logits_processor import LogitsProcessors
from vllm.v1.sample.logits_processor.builtin import MinTokensLogitsProcessor
from vllm.v1.sample.logits_processor.interface import BatchUpdate
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
from vllm.v1.structured_output.utils import apply_grammar_bitmask

from rig.schedule_target import VOCABULARY, Mind

CPU = torch.device("cpu")
NO_PENALTIES = torch.zeros(0)
USUAL = -1e-3 * torch.arange(VOCABULARY)  # of words that nobody wishes for: no two are alike
PLAIN_SHARE = 4
"""Of so many steps in which all take the likeliest words, vLLM's sampler draws one."""

torch.set_num_threads(1)  # rows are few: threads would only wait for each other
current_platform.import_kernels()
current_platform.register_triton_kernel_overrides()


@dataclass(frozen=True)
class Speaking:
    """A request of a step that says something."""

    request: Request
    minds: Sequence[Mind]
    """What is known at each place where a token is to be drawn."""
    draft: list[int]


@dataclass(frozen=True)
class _Batch:
    """What vLLM's function reads of the batch that its workers keep."""

    req_ids: list[str]


class Sampling:
    """Draws the tokens of steps. It keeps the state of requests that sample with a seed."""

    def __init__(self, verifies: bool) -> None:
        """``verifies`` drafts, as vLLM does wherever a speculative method is configured."""
        self._verifies = verifies
        self._sampler = Sampler()
        self._rejection_sampler = RejectionSampler(self._sampler, None, CPU)
        self._generators: dict[int, torch.Generator] = {}
        self._params: list[SamplingParams] = []
        self._num_steps = 0

    def begin(self, params: SamplingParams) -> None:
        """A request with these parameters exists."""
        if params.seed is not None:
            self._generators[id(params)] = torch.Generator().manual_seed(params.seed)
        self._params.append(params)  # kept, so that its id stays its own

    def draw(
        self, speaking: Mapping[str, Speaking], step: SchedulerOutput, grammar: GrammarOutput | None
    ) -> dict[str, list[int]]:
        """What each says: its own token, after those of its draft that it would have said."""
        self._num_steps += 1
        rows = list(speaking.values())
        if not grammar and not any(_needs_sampler(row.request) for row in rows):
            if not self._verifies:
                return {name: [row.minds[0].wishes()[0]] for name, row in speaking.items()}
            if self._num_steps % PLAIN_SHARE:
                return {name: _likeliest(row) for name, row in speaking.items()}
        likeliest = torch.tensor([mind.wishes() for row in rows for mind in row.minds])
        logits = USUAL.repeat(len(likeliest), 1)
        logits.scatter_(1, likeliest[:, :1], 6.0)
        logits.scatter_(1, likeliest[:, 1:], 5.0)
        if grammar is not None:
            apply_grammar_bitmask(step, grammar, _Batch(list(speaking)), logits)
        metadata = self._metadata([row.request for row in rows])
        with torch.inference_mode():
            if not self._verifies:
                drawn = self._sampler(logits, metadata).sampled_token_ids
                return dict(zip(speaking, drawn.tolist(), strict=True))
            drafts = [row.draft for row in rows]
            drawn = self._rejection_sampler(_rows(drafts), None, logits, metadata)
        tokens, _ = RejectionSampler.parse_output(drawn.sampled_token_ids, VOCABULARY)
        return dict(zip(speaking, tokens, strict=True))

    def _metadata(self, requests: list[Request]) -> SamplingMetadata:
        size = len(requests)
        temperatures = [request.sampling_params.temperature for request in requests]
        processors = []
        if any(request.sampling_params.min_tokens for request in requests):
            min_tokens = MinTokensLogitsProcessor(None, CPU, False)
            added = [
                (place, request.sampling_params, None, request._output_token_ids)
                for place, request in enumerate(requests)
            ]
            min_tokens.update_state(BatchUpdate(size, removed=[], added=added, moved=[]))
            processors.append(min_tokens)
        return SamplingMetadata(
            temperature=torch.tensor(temperatures) if any(temperatures) else None,
            all_greedy=not any(temperatures),
            all_random=all(temperatures),
            top_p=None,
            top_k=None,
            generators={
                place: generator
                for place, request in enumerate(requests)
                if (generator := self._generators.get(id(request.sampling_params)))
            },
            max_num_logprobs=None,
            no_penalties=True,
            prompt_token_ids=None,
            frequency_penalties=NO_PENALTIES,
            presence_penalties=NO_PENALTIES,
            repetition_penalties=NO_PENALTIES,
            output_token_ids=[request._output_token_ids for request in requests],
            allowed_token_ids_mask=None,
            bad_words_token_ids={},
            logitsprocs=LogitsProcessors(processors),
        )


def _needs_sampler(request: Request) -> bool:
    """Whether vLLM's plain sampler does more than take the likeliest token."""
    params = request.sampling_params
    return params.temperature > 0 or params.min_tokens > request.num_output_tokens


def _likeliest(row: Speaking) -> list[int]:
    said = []
    for mind, drafted in zip(row.minds, [*row.draft, None], strict=True):
        said.append(mind.wishes()[0])
        if said[-1] != drafted:
            break
    return said


def _rows(drafts: list[list[int]]) -> SpecDecodeMetadata:
    """Which rows of the logits verify a draft, and which follow it."""
    rows = SpecDecodeMetadata.make_dummy(drafts, CPU)
    targets, ends, place = list[int](), list[int](), 0
    for draft in drafts:
        targets += range(place, place + len(draft))
        place += len(draft) + 1
        ends.append(place - 1)
    rows.target_logits_indices = torch.tensor(targets, dtype=torch.int64)
    rows.bonus_logits_indices = torch.tensor(ends, dtype=torch.int64)
    rows.logits_indices = torch.arange(place)
    return rows
