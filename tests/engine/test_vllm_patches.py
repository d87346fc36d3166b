"""What a step without drafts is sampled like, where a speculative method is configured."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("vllm")
from vllm import SamplingParams
from vllm.v1.sample.logits_processor import LogitsProcessors
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.sample.thinking_budget_state import ThinkingBudgetStateHolder
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata

from headstart.engine.vllm_patches import leave_no_budget_behind, sample_plainly_without_drafts
from rig.schedule_sampling import CPU, NO_PENALTIES

pytestmark = pytest.mark.engine

VOCABULARY, THINK, END_OF_THINKING = 32, 30, 31
NAMED = {1: [5, 6, 7]}


def sampling(**settings):
    given = {
        "temperature": None,
        "all_greedy": True,
        "all_random": False,
        "top_p": None,
        "top_k": None,
        "generators": {},
        "max_num_logprobs": None,
        "no_penalties": True,
        "prompt_token_ids": None,
        "frequency_penalties": NO_PENALTIES,
        "presence_penalties": NO_PENALTIES,
        "repetition_penalties": NO_PENALTIES,
        "output_token_ids": [[], []],
        "allowed_token_ids_mask": None,
        "bad_words_token_ids": {},
        "logitsprocs": LogitsProcessors(),
        "spec_token_ids": [[], []],
        **settings,
    }
    return SamplingMetadata(**given)


def rows(*drafts):
    """Of a step that verifies these, as vLLM lays them out."""
    made = SpecDecodeMetadata.make_dummy([list(draft) for draft in drafts], CPU)
    ends = torch.tensor([len(draft) + 1 for draft in drafts]).cumsum(0) - 1
    made.bonus_logits_indices = ends
    made.target_logits_indices = torch.tensor(
        [row for row in range(int(ends[-1]) + 1) if row not in ends], dtype=torch.int64
    )
    return made


@pytest.fixture
def sampler():
    sample_plainly_without_drafts()
    return RejectionSampler(Sampler(), None, CPU)


@pytest.mark.parametrize(
    "settings",
    [
        {"logprob_token_ids": NAMED},
        {"logprob_token_ids": NAMED, "max_num_logprobs": 1},
        {
            "temperature": torch.ones(2),
            "all_greedy": False,
            "all_random": True,
            "top_k": torch.tensor([1, 1], dtype=torch.int32),
        },
    ],
    ids=["named logprobs", "named logprobs beside others", "top_k"],
)
def test_a_step_without_drafts_is_sampled_as_vllm_alone_samples_it(sampler, settings):
    logits = torch.randn(2, VOCABULARY, generator=torch.Generator().manual_seed(1))
    ours = sampler(rows([], []), None, logits.clone(), sampling(**settings))
    alone = Sampler()(logits.clone(), sampling(**settings))
    assert torch.equal(ours.sampled_token_ids, alone.sampled_token_ids)
    assert (ours.logprobs_tensors is None) == (alone.logprobs_tensors is None)
    for one, other in zip(ours.logprobs_tensors or (), alone.logprobs_tensors or (), strict=True):
        assert one is None or torch.equal(one, other)


@pytest.fixture
def holder():
    """Of three rows; the first thinks with a budget, the others have none."""
    leave_no_budget_behind()
    marks = SimpleNamespace(
        reasoning_start_token_ids=[THINK], reasoning_end_token_ids=[END_OF_THINKING]
    )
    holder = ThinkingBudgetStateHolder(marks, 3, 4, CPU, False)
    budget = SamplingParams(thinking_token_budget=1)
    added = [(0, budget, [3, THINK], []), *((row, SamplingParams(), [3], []) for row in (1, 2))]
    holder.sync_batch(BatchUpdate(3, removed=[], added=added, moved=[]))
    return holder


def test_a_request_that_is_moved_takes_over_nobodys_budget(holder):
    """As vLLM tells it when the first row's request has ended and the last takes its place."""
    moved = [(2, 0, MoveDirectionality.UNIDIRECTIONAL)]
    holder.sync_batch(BatchUpdate(2, removed=[], added=[], moved=moved))
    assert not holder.has_tracked_requests()


def test_a_budget_moves_with_its_request(holder):
    for start, end, direction in (
        (0, 2, MoveDirectionality.SWAP),
        (1, 2, MoveDirectionality.SWAP),
        (1, 0, MoveDirectionality.UNIDIRECTIONAL),
    ):
        holder.sync_batch(BatchUpdate(3, removed=[], added=[], moved=[(start, end, direction)]))
        assert holder.has_tracked_requests()
    assert set(holder._state) == {0}


def test_a_budget_for_thinking_holds_in_each_section_of_an_answer(sampler):
    """The second request may think one token at a time; the target would never stop."""
    marks = SimpleNamespace(
        reasoning_start_token_ids=[THINK], reasoning_end_token_ids=[END_OF_THINKING]
    )
    holder = ThinkingBudgetStateHolder(marks, 2, 4, CPU, False)
    said = [[], []]
    params = SamplingParams(thinking_token_budget=1)
    added = [(0, SamplingParams(), [3], said[0]), (1, params, [3, THINK], said[1])]
    holder.sync_batch(BatchUpdate(2, removed=[], added=added, moved=[]))
    settings = sampling(output_token_ids=said, thinking_budget_state_holder=holder)
    for step in range(9):
        logits = torch.zeros(2, VOCABULARY)
        logits[:, THINK if step % 4 == 3 else 9] = 5.0
        drawn = sampler(rows([], []), None, logits, settings).sampled_token_ids
        for answer, (token,) in zip(said, drawn.tolist(), strict=True):
            answer.append(token)
    assert said[0] == [9, 9, 9, THINK, 9, 9, 9, THINK, 9]
    assert said[1] == [9, END_OF_THINKING, 9, THINK, 9, END_OF_THINKING, 9, THINK, 9]
