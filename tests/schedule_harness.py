"""Schedulers without an engine: requests in, steps out, tokens back.

The target (`tests/schedule_target.py`) is a function of what its KV cache holds. Each slot of the
cache keeps the state after one token, computed from the slot before it through the request's own
block table, as attention would: a draft that is not taken back, a block that is shared wrongly or a
slot that was never reserved changes what is said. Tokens are drawn by vLLM's own samplers,
min_tokens and seeds included, so what those get wrong with drafts is seen too.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import torch
from vllm import SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.platforms import current_platform
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.sample.logits_processor import LogitsProcessors
from vllm.v1.sample.logits_processor.builtin import MinTokensLogitsProcessor
from vllm.v1.sample.logits_processor.interface import BatchUpdate
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
from vllm.v1.structured_output import StructuredOutputManager

from headstart.engine.options import SchedulerOptions, Sources
from headstart.engine.prompt_pace import PromptPace
from headstart.engine.scheduler import HeadstartScheduler
from headstart.engine.startup import drafting_arguments
from headstart.speculation.draft import Draft
from headstart.speculation.pass_costs import PassCosts
from tests.schedule_target import END, VOCABULARY, Mind

BLOCK_SIZE = 16
CPU = torch.device("cpu")
NO_PENALTIES = torch.zeros(0)

torch.set_num_threads(1)  # rows are few: threads would only wait for each other
current_platform.import_kernels()
current_platform.register_triton_kernel_overrides()
init_none_hash(sha256)


class HarnessError(AssertionError):
    """A step that no engine could execute."""


@dataclass(frozen=True)
class Turn:
    """A piece of a request's input, and what may be said after it."""

    prompt: tuple[int, ...]
    params: dict[str, Any]
    at: int = 0
    """The step it arrives in."""


@dataclass(frozen=True)
class Asked:
    """A request. With several turns its prompt grows, as in vLLM's streaming input."""

    name: str
    turns: tuple[Turn, ...]
    priority: int = 0
    session_id: str | None = None
    aborted_at: int | None = None
    late: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Drafts that arrive in these steps."""


@dataclass
class Said:
    """What became of a request: its answers, and how each ended."""

    turns: list[list[int]] = field(default_factory=lambda: [[]])
    reasons: list[str] = field(default_factory=list)


@dataclass
class Counts:
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    fused: int = 0
    """Of the drafted, those verified in the step that ended the prompt."""
    preemptions: int = 0


@cache
def model_directory() -> str:
    """A Llama's config, which is all that a scheduler reads of a model."""
    directory = Path(mkdtemp(prefix="schedules-"))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": END,
        "torch_dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(config))
    return str(directory)


def scheduler(
    max_draft_tokens: int,
    num_blocks: int = 400,
    sources: Sources = Sources(abstain=False),  # noqa: B008 - frozen
    kv_cache_spec: Any = None,
    **arguments: Any,
) -> Scheduler:
    """Ours, or vLLM's own with ``max_draft_tokens`` 0."""
    drafting = (
        drafting_arguments(max_draft_tokens, SchedulerOptions(sources), {})
        if max_draft_tokens
        else {}
    )
    given = {
        "max_model_len": 160,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 256,
        **drafting,
        **arguments,
    }
    config = EngineArgs(
        model_directory(),
        skip_tokenizer_init=True,
        dtype="float32",
        block_size=BLOCK_SIZE,
        kv_cache_memory_bytes=1 << 26,
        **given,
    ).create_engine_config()
    config.cache_config.num_gpu_blocks = num_blocks
    spec = kv_cache_spec or FullAttentionSpec(
        block_size=BLOCK_SIZE, num_kv_heads=1, head_size=1, dtype=torch.float32
    )
    cache_config = KVCacheConfig(num_blocks, [], [KVCacheGroupSpec(["layer"], spec)])
    kind = HeadstartScheduler if max_draft_tokens else Scheduler
    manager = StructuredOutputManager(config)
    return kind(config, cache_config, manager, block_size=BLOCK_SIZE)


class AnyPace(PromptPace):
    """Leaves any number of tokens for prompts: here passes take no time that is worth measuring."""

    def __init__(self, seed: int) -> None:
        super().__init__(PassCosts())
        self._dice = Random(seed)

    def room(self, answers: Sequence[str]) -> int | None:
        return self._dice.choice([None, 0, 0, 1, 5, 17, 40]) if answers else None


class Player:
    """Plays requests through a scheduler: vLLM's engine loop, with the target above."""

    def __init__(self, scheduler: Scheduler, num_in_flight: int = 1) -> None:
        self.scheduler = scheduler
        self.said: dict[str, Said] = {}
        self.counts = Counts()
        self._speculative = scheduler.num_spec_tokens > 0
        self._num_in_flight = num_in_flight
        self._flying: deque[tuple[SchedulerOutput, ModelRunnerOutput]] = deque()
        self._hasher = get_request_block_hasher(BLOCK_SIZE, sha256)
        self._cache = [Mind()] * (scheduler.cache_config.num_gpu_blocks * BLOCK_SIZE)
        self._sampler = Sampler()
        self._rejection_sampler = RejectionSampler(self._sampler, None, CPU)
        self._generators: dict[int, torch.Generator] = {}
        self._params: list[SamplingParams] = []
        self._aborted: set[str] = set()

    @property
    def in_flight(self) -> int:
        """Steps that are computed and not taken in."""
        return len(self._flying)

    def add(self, asked: Asked, number: int = 0) -> None:
        """The request, or with a ``number`` a later turn of it; one past the last ends it."""
        if asked.name in self._aborted:
            return
        self.said.setdefault(asked.name, Said())
        ends = number == len(asked.turns)
        turn = asked.turns[min(number, len(asked.turns) - 1)]
        params = SamplingParams(**{"temperature": 0.0, "max_tokens": 20, **turn.params})
        params.update_from_generation_config({}, END)
        request = Request(
            asked.name,
            list(turn.prompt),
            params,
            None,
            arrival_time=float(len(self.said)),
            priority=asked.priority,
            block_hasher=self._hasher,
            resumable=len(asked.turns) > 1 and not ends,
            session_id=asked.session_id,
        )
        if params.seed is not None:
            self._generators[id(params)] = torch.Generator().manual_seed(params.seed)
        self._params.append(params)  # kept, so that its id stays its own
        self.scheduler.add_request(request)

    def abort(self, name: str) -> None:
        self._aborted.add(name)
        self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)

    def post(self, name: str, draft: tuple[int, ...]) -> None:
        if self._speculative:
            self.scheduler._cascade.post(name, Draft(draft, "late", 1.0))

    def step(self, meanwhile: Callable[[], None] | None = None) -> SchedulerOutput:
        """One step: laid out, computed, and, unless more are in flight, taken in.

        What comes ``meanwhile`` comes as it is computed, as vLLM's engine takes aborts.
        """
        step = self.scheduler.schedule()
        self._flying.append((step, self._execute(step)))
        if meanwhile is not None:
            meanwhile()
        self.counts.steps += 1
        self.counts.preemptions += len(step.preempted_req_ids or ())
        idle = not step.total_num_scheduled_tokens
        while self._flying and (idle or len(self._flying) == self._num_in_flight):
            self._take(*self._flying.popleft())
        return step

    def _take(self, step: SchedulerOutput, output: ModelRunnerOutput) -> None:
        told = self.scheduler.update_from_output(step, output)
        for outputs in told.values():
            for one in outputs.outputs:
                said = self.said[one.request_id]
                said.turns[-1] += one.new_token_ids
                if one.finish_reason is not None:
                    said.reasons.append(str(one.finish_reason))
                    said.turns.append([])

    def _execute(self, step: SchedulerOutput) -> ModelRunnerOutput:
        names = list(step.num_scheduled_tokens)
        speaking: dict[str, tuple[list[Mind], list[int]]] = {}
        if sum(step.num_scheduled_tokens.values()) != step.total_num_scheduled_tokens:
            raise HarnessError("the step does not add up")
        if step.total_num_scheduled_tokens > self.scheduler.max_num_scheduled_tokens:
            raise HarnessError("the step is larger than it may be")
        for name in names:
            draft = step.scheduled_spec_decode_tokens.get(name, [])
            minds = self._compute(name, step.num_scheduled_tokens[name], draft)
            if minds:
                speaking[name] = minds, draft
        said = self._draw(speaking) if speaking else {}
        for name, (_, draft) in speaking.items():
            real = sum(token >= 0 for token in draft)
            self.counts.drafted += real
            self.counts.fused += real * (not self.scheduler.requests[name].num_output_tokens)
            self.counts.accepted += max(0, len(said[name]) - 1)
        return ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=[said.get(name, []) for name in names],
            logprobs=None,
            prompt_logprobs_dict={},
        )

    def _compute(self, name: str, num_tokens: int, draft: list[int]) -> list[Mind]:
        """Fill the cache, and return what is known where tokens are to be drawn."""
        request = self.scheduler.requests[name]
        start = request.num_computed_tokens - num_tokens  # already advanced
        end = start + num_tokens - len(draft)
        if start < 0 or end > request.num_tokens:
            raise HarnessError("scheduled beyond what is known")
        if draft and end < request.num_tokens:
            raise HarnessError("a draft before the end of what is known")
        if start + num_tokens > self.scheduler.max_model_len:
            raise HarnessError("scheduled beyond max_model_len")
        (blocks,) = self.scheduler.kv_cache_manager.get_block_ids(name)
        if len(blocks) * BLOCK_SIZE < start + num_tokens:
            raise HarnessError("no slot in the cache")
        mind = self._cache[self._slot(blocks, start - 1)] if start else Mind()
        minds = []
        for place, token in enumerate([*request.all_token_ids[start:end], *draft], start):
            mind = mind.after(token)
            self._cache[self._slot(blocks, place)] = mind
            minds.append(mind)
        return minds[-1 - len(draft) :] if end == request.num_tokens else []

    @staticmethod
    def _slot(blocks: list[int], place: int) -> int:
        return blocks[place // BLOCK_SIZE] * BLOCK_SIZE + place % BLOCK_SIZE

    def _draw(self, speaking: dict[str, tuple[list[Mind], list[int]]]) -> dict[str, list[int]]:
        requests = [self.scheduler.requests[name] for name in speaking]
        if not self._speculative and not any(map(_needs_sampler, requests)):
            return {name: [minds[0].wishes()[0]] for name, (minds, _) in speaking.items()}
        minds = [mind for minds, _ in speaking.values() for mind in minds]
        likeliest = torch.tensor([mind.wishes() for mind in minds])
        logits = torch.zeros(len(minds), VOCABULARY)
        logits.scatter_(1, likeliest[:, :1], 6.0)
        logits.scatter_(1, likeliest[:, 1:], 5.0)
        metadata = self._metadata(requests)
        with torch.inference_mode():
            if not self._speculative:
                drawn = self._sampler(logits, metadata).sampled_token_ids
                return dict(zip(speaking, drawn.tolist(), strict=True))
            drafts = [draft for _, draft in speaking.values()]
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
