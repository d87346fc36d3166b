"""Streams that never say anything twice, played through a scheduler: no draft of them can pay."""

import time
from dataclasses import dataclass, field
from random import Random

from vllm import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from headstart.engine.options import Sources
from rig.schedule_harness import BLOCK_SIZE, scheduler
from rig.schedule_target import END, FIRST_WORD, VOCABULARY

NUM_PROMPT_TOKENS = 100
NUM_WORDS = 120  # of an answer, about: streams are out of step with each other


@dataclass
class TimedPasses:
    """Of passes in which every stream answered."""

    scheduling_s: list[float] = field(default_factory=list)
    """In time on the processor, for laying out a pass and taking in its words."""
    drafted: list[int] = field(default_factory=list)
    """Tokens of each."""
    ended: list[int] = field(default_factory=list)
    """Answers that it completed: who was asked is judged then, and memory learns."""


class IdleStreams:
    """So many streams, each with a question under way all the time."""

    def __init__(
        self, batch: int, max_draft_tokens: int, sources: Sources, *, tagged: bool
    ) -> None:
        self.scheduler = scheduler(
            max_draft_tokens,
            num_blocks=batch * 20 + 100,
            sources=sources,
            max_model_len=320,
            max_num_seqs=batch,
            max_num_batched_tokens=max(8192, batch * 40),
            enable_prefix_caching=False,
        )
        self.passes = TimedPasses()
        self._tagged, self._dice, self._num_asked = tagged, Random(batch), 0
        self._hasher = get_request_block_hasher(BLOCK_SIZE, sha256)
        self._streams: dict[str, int] = {}
        for stream in range(batch):
            self._ask(stream, self._dice.randrange(NUM_WORDS // 2, NUM_WORDS))

    def _ask(self, stream: int, num_words: int) -> None:
        self._num_asked += 1
        name = f"r{self._num_asked}"
        self._streams[name] = stream
        tags = {"headstart": {"stream": f"camera-{stream}", "question": "q"}}
        params = SamplingParams(
            temperature=0.0,
            max_tokens=num_words,
            ignore_eos=True,
            extra_args=tags if self._tagged else None,
        )
        params.update_from_generation_config({}, END)
        prompt = self._dice.choices(range(FIRST_WORD, VOCABULARY), k=NUM_PROMPT_TOKENS)
        self.scheduler.add_request(
            Request(name, prompt, params, None, block_hasher=self._hasher, arrival_time=0.0)
        )

    def step(self) -> None:
        """One pass; whose answer is complete asks again."""
        begun_s = time.thread_time()
        step = self.scheduler.schedule()
        laid_out_s = time.thread_time() - begun_s
        names, requests = list(step.num_scheduled_tokens), self.scheduler.requests
        is_full = (
            len(names)
            == len(self._streams)
            == step.total_num_scheduled_tokens
            - sum(map(len, step.scheduled_spec_decode_tokens.values()))
        )
        said = [
            [self._dice.randrange(FIRST_WORD, VOCABULARY)]
            if requests[name].num_computed_tokens >= requests[name].num_tokens
            else []
            for name in names
        ]
        output = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=said,
            logprobs=None,
            prompt_logprobs_dict={},
        )
        begun_s = time.thread_time()
        self.scheduler.update_from_output(step, output)
        if is_full:
            self.passes.scheduling_s.append(laid_out_s + time.thread_time() - begun_s)
            drafted = sum(map(len, step.scheduled_spec_decode_tokens.values()))
            self.passes.drafted.append(drafted)
            self.passes.ended.append(sum(name not in requests for name in names))
        for name in names:
            if name not in requests:
                self._ask(self._streams.pop(name), NUM_WORDS)
