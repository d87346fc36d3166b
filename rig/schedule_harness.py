"""Plays requests through a scheduler without an engine: requests in, steps out, tokens back.

The target (`rig/schedule_target.py`) is a function of what its KV cache holds. Each slot of the
cache keeps the state after one token, computed from the slot before it through the request's own
block table, as attention would: a draft that is not taken back, a block that is shared wrongly or a
slot that was never reserved changes what is said. Layers with a window have slots of their own, of
which they look at the newest and the oldest that they may. A picture's tokens are what an encoder
made of it. Tokens are drawn by vLLM's own samplers (`rig/schedule_sampling.py`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from zlib import crc32

from vllm import SamplingParams
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from headstart.engine.prompt_pace import Account, PromptPace
from headstart.engine.rehearsals import Rehearsals
from headstart.engine.request_state import RequestState
from headstart.speculation.draft import Draft
from headstart.speculation.pass_costs import PassCosts
from rig.schedule_engine import BLOCK_SIZE, scheduler
from rig.schedule_sampling import Sampling, Speaking
from rig.schedule_target import END, Mind

__all__ = ["BLOCK_SIZE", "scheduler"]

init_none_hash(sha256)


class HarnessError(AssertionError):
    """A step that no engine could execute."""


@dataclass(frozen=True)
class Picture:
    """An item of a prompt that an encoder computes: so many tokens from a place on."""

    name: str
    offset: int
    length: int

    def word(self, place: int) -> int:
        """What stands for one of its tokens, the same in every process."""
        return crc32(f"{self.name} {place - self.offset}".encode())


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
    is_aborted_in_a_step: bool = False
    """While it is computed, rather than between two."""
    late: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Drafts that arrive in these steps."""
    pictures: tuple[Picture, ...] = ()
    """In its first turn."""

    @property
    def arrives_at(self) -> int:
        return self.turns[0].at


def words_of(prompt: Sequence[int], pictures: Sequence[Picture]) -> list[int]:
    """A prompt as the target sees it."""
    words = list(prompt)
    for picture in pictures:
        for place in range(picture.offset, picture.offset + picture.length):
            words[place] = picture.word(place)
    return words


@dataclass
class Said:
    """What became of a request: its answers, and how each ended."""

    turns: list[list[int]] = field(default_factory=lambda: [[]])
    reasons: list[str] = field(default_factory=list)
    ended_at: int = field(default=0, compare=False)
    """The step in which it said its last token."""


@dataclass
class Counts:
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    fused: int = 0
    """Of the drafted, those verified in the step that ended the prompt."""
    preemptions: int = 0
    constrained: int = 0
    """Of the drafted, those of requests with a grammar."""
    rehearsed: int = 0
    """Tokens that rehearsals have said."""
    encoded: int = 0
    """Pictures that the encoder computed."""


class AnyPace(PromptPace):
    """Leaves any number of tokens for prompts: here passes take no time that is worth measuring."""

    def __init__(self, seed: int, *, cuts_prompts: bool) -> None:
        super().__init__(PassCosts(), cuts_prompts=cuts_prompts)
        self._dice = Random(seed)

    def _left(self, answers: Sequence[Account], prompts: Iterable[Account]) -> int | None:
        return self._dice.choice([None, 0, 0, 1, 5, 17, 40]) if answers else None


class AnyRehearsals(Rehearsals):
    """Has any of them take part beside answers, as where that costs hardly anything."""

    def __init__(self, seed: int, scheduler: Scheduler) -> None:
        super().__init__(scheduler, None, PassCosts())
        self._dice = Random(seed)
        self.num_said = 0

    def ended(self, state: RequestState, *, is_whole: bool) -> None:
        if state.rehearses:
            self.num_said += state.request.num_output_tokens
        super().ended(state, is_whole=is_whole)

    def _num_added(self, answers: Sequence[Request]) -> int:
        return self._dice.choice([0, 1, 2, 9, 40])


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
        groups = scheduler.kv_cache_config.kv_cache_groups
        self._windows = [getattr(group.kv_cache_spec, "sliding_window", None) for group in groups]
        size = scheduler.kv_cache_config.num_blocks * BLOCK_SIZE
        self._caches = [[Mind()] * size for _ in groups]
        self._encoded: dict[str, int] = {}
        """The sizes of the pictures that the encoder's cache holds."""
        self._pictures: dict[str, tuple[Picture, ...]] = {}
        self._sampling = Sampling(self._speculative)
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
        self._pictures[asked.name] = asked.pictures
        if params.structured_outputs is not None:
            params.structured_outputs._backend = "xgrammar"
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
            mm_features=[
                MultiModalFeatureSpec(
                    None, "image", picture.name, PlaceholderRange(picture.offset, picture.length)
                )
                for picture in asked.pictures
            ],
        )
        self._sampling.begin(params)
        self.scheduler.structured_output_manager.grammar_init(request)
        self.scheduler.add_request(request)

    def abort(self, name: str) -> None:
        self._aborted.add(name)
        self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)

    def post(self, name: str, draft: tuple[int, ...]) -> None:
        state = self.scheduler._states.get(name) if self._speculative else None
        if state is not None and state.drafted is not None:
            self.scheduler._cascade.post(state.drafted, Draft(draft, "late", 1.0))

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
                    said.ended_at = self.counts.steps
                    said.reasons.append(str(one.finish_reason))
                    said.turns.append([])

    def _execute(self, step: SchedulerOutput) -> ModelRunnerOutput:
        names = list(step.num_scheduled_tokens)
        if sum(step.num_scheduled_tokens.values()) != step.total_num_scheduled_tokens:
            raise HarnessError("the step does not add up")
        if step.total_num_scheduled_tokens > self.scheduler.max_num_scheduled_tokens:
            raise HarnessError("the step is larger than it may be")
        self._encode(step)
        speaking: dict[str, Speaking] = {}
        for name in names:
            draft = step.scheduled_spec_decode_tokens.get(name, [])
            minds = self._compute(name, step.num_scheduled_tokens[name], draft)
            if minds:
                speaking[name] = Speaking(self.scheduler.requests[name], minds, draft)
        grammar = self.scheduler.get_grammar_bitmask(step)
        said = self._sampling.draw(speaking, step, grammar) if speaking else {}
        for name, one in speaking.items():
            real = sum(token >= 0 for token in one.draft)
            self.counts.drafted += real
            self.counts.fused += real * (not one.request.num_output_tokens)
            self.counts.constrained += real * one.request.use_structured_output
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
        whole = not self.scheduler.scheduler_config.enable_chunked_prefill
        if whole and end < request.num_tokens and not self._pictures[name]:
            raise HarnessError("a part of a prompt, where vLLM was told to compute it as a whole")
        if draft and end < request.num_tokens:
            raise HarnessError("a draft before the end of what is known")
        if start + num_tokens > self.scheduler.max_model_len:
            raise HarnessError("scheduled beyond max_model_len")
        words = [*request.all_token_ids[start:end], *draft]
        for picture in self._pictures[name]:
            begins, ends = max(start, picture.offset), min(end, picture.offset + picture.length)
            if begins < ends and picture.name not in self._encoded:
                raise HarnessError("a picture that no encoder has seen")
            for place in range(begins, ends):
                words[place - start] = picture.word(place)
        first, *others = [
            self._fill(name, group, blocks, start, words)
            for group, blocks in enumerate(self.scheduler.kv_cache_manager.get_block_ids(name))
        ]
        for minds in others:
            if minds != first:
                first = [
                    one if one == other else one.after(other.everything)
                    for one, other in zip(first, minds, strict=True)
                ]
        return first[-1 - len(draft) :] if end == request.num_tokens else []

    def _fill(
        self, name: str, group: int, blocks: list[int], start: int, words: list[int]
    ) -> list[Mind]:
        """What a group of layers knows after each of these words."""
        cache, window = self._caches[group], self._windows[group]
        if len(blocks) * BLOCK_SIZE < start + len(words):
            raise HarnessError("no slot in the cache")
        mind = cache[self._slot(blocks, start - 1)] if start else Mind()
        if window is not None and (oldest := start + 1 - window) > 0:
            found = cache[self._slot(blocks, oldest)]
            if (found.length, found.recent[-1:]) != (oldest + 1, (self._word(name, oldest),)):
                mind = mind.after(found.everything)
        minds = []
        for place, word in enumerate(words, start):
            mind = mind.after(word)
            cache[self._slot(blocks, place)] = mind
            minds.append(mind)
        return minds

    def _word(self, name: str, place: int) -> int:
        for picture in self._pictures[name]:
            if picture.offset <= place < picture.offset + picture.length:
                return picture.word(place)
        return self.scheduler.requests[name].all_token_ids[place]

    @staticmethod
    def _slot(blocks: list[int], place: int) -> int:
        if not blocks[place // BLOCK_SIZE]:
            raise HarnessError("a slot that was given back")
        return blocks[place // BLOCK_SIZE] * BLOCK_SIZE + place % BLOCK_SIZE

    def _encode(self, step: SchedulerOutput) -> None:
        for name in step.free_encoder_mm_hashes:
            self._encoded.pop(name, None)
        num_computed = 0
        for name, items in step.scheduled_encoder_inputs.items():
            for item in items:
                picture = self._pictures[name][item]
                self._encoded[picture.name] = picture.length
                self.counts.encoded += 1
                num_computed += picture.length
        if num_computed > self.scheduler.max_num_encoder_input_tokens:
            raise HarnessError("more pictures than the encoder may compute in a step")
        if sum(self._encoded.values()) > self.scheduler.encoder_cache_manager.cache_size:
            raise HarnessError("more pictures than the encoder's cache can hold")
