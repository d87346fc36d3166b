"""Drafts in vLLM's scheduler: fewer passes, the same tokens, whatever is handed in."""

import numpy as np
import pytest

from headstart.engine.model import text_vocabulary
from tests.models.oracle import BLOCK_SIZE, Asked, random_asked, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 34
NUM_SPECULATIVE = 16
CHUNK = 96


SETTINGS = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": BLOCK_SIZE,
    "max_num_seqs": 6,
}
SAMPLED = {"temperature": 1.0, "seed": 7, "max_tokens": 24, "detokenize": False}


@pytest.fixture(scope="module")
def drawn(tiny_target, sampled_prompt):
    """What vLLM without our scheduler draws for `sampled_prompt`, from an engine of its own."""
    from vllm import LLM, SamplingParams

    llm = LLM(str(tiny_target), **SETTINGS)
    (output,) = llm.generate(sampled_prompt, SamplingParams(**SAMPLED), use_tqdm=False)
    llm.llm_engine.engine_core.shutdown()
    return list(output.outputs[0].token_ids)


@pytest.fixture(scope="module")
def sampled_prompt():
    (asked,) = random_asked(np.random.default_rng(7), 1)
    return asked.prompt


@pytest.fixture(
    scope="module",
    params=[{"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": CHUNK}],
    ids=["one-chunk", "many-chunks"],
)
def hooked(request, tiny_target, drawn):
    """vLLM with our flags, as a person who runs their own would set them."""
    from vllm import LLM

    llm = LLM(
        str(tiny_target),
        per_request_spec_decode_metrics="detailed",
        scheduler_cls="headstart.engine.scheduler.HeadstartScheduler",
        # Whether drafts pay on this machine now is not what is tested.
        additional_config={"headstart": {"sources": {"abstain": False}}},
        speculative_config={
            "method": "custom_class",
            "model": "headstart.engine.scheduler.NoProposals",
            "num_speculative_tokens": NUM_SPECULATIVE,
        },
        **SETTINGS,
        **request.param,
    )
    yield llm
    llm.llm_engine.engine_core.shutdown()


@pytest.fixture
def ask(hooked):
    hooked.reset_prefix_cache()

    def ask(asked: list[Asked], drafts: list, **params):
        from vllm import SamplingParams

        requests = [
            SamplingParams(
                temperature=0.0,
                max_tokens=MAX_TOKENS,
                detokenize=False,
                extra_args={"headstart": {"draft": draft}},
                **params,
            )
            for draft in drafts
        ]
        outputs = hooked.generate([a.prompt for a in asked], requests, use_tqdm=False)
        ask.verified = [output.outputs[0].spec_decode_metrics for output in outputs]
        return [list(output.outputs[0].token_ids) for output in outputs]

    return ask


def num_from_verified_passes(metrics) -> int:
    """Tokens that came out of passes with a draft: what each accepted, and one of its own."""
    return sum(metrics.per_step_accepted) + len(metrics.per_step_accepted)


def corrupted(rng, answer: list[int], share: float) -> list[int]:
    wrong = rng.random(len(answer)) < share
    return [int(rng.integers(3, 500)) if w else t for w, t in zip(wrong, answer, strict=True)]


def test_a_right_draft_is_verified_together_with_the_prompt(ask, oracle, rng):
    text, num_checked = text_vocabulary(oracle.model.config), 0
    for asked in random_asked(rng, 6):
        expected, _ = oracle.answer(asked, MAX_TOKENS)
        if len(text.text_prefix(expected)) < MAX_TOKENS:
            continue  # untrained, it also says placeholders, which are never drafted
        assert ask([asked], [expected]) == [expected]
        # Had the first token come from a pass of its own, it would be missing here.
        assert num_from_verified_passes(ask.verified[0]) == MAX_TOKENS
        assert len(ask.verified[0].per_step_accepted) <= 3
        num_checked += 1
    assert num_checked


def counted(monkeypatch, owner, name: str) -> list[int]:
    """A list that grows by one with each call of a method."""
    calls, original = [], getattr(owner, name)

    def called(*args, **kwargs):
        calls.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, called)
    return calls


def test_a_step_without_drafts_takes_vllms_plain_way(hooked, ask, oracle, rng, monkeypatch):
    from vllm import SamplingParams

    core = hooked.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    verified = counted(monkeypatch, runner.rejection_sampler, "forward")
    proposed = counted(monkeypatch, runner.drafter, "propose")
    asked_for = counted(monkeypatch, core.model_executor, "take_draft_token_ids")
    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    untagged = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS, detokenize=False)
    (output,) = hooked.generate(asked.prompt, untagged, use_tqdm=False)
    assert list(output.outputs[0].token_ids) == expected
    assert (verified, proposed, asked_for) == ([], [], [])
    hooked.reset_prefix_cache()
    assert ask([asked], [expected[:4]]) == [expected]
    # Every verified draft went through the sampler for drafts, and nothing else did.
    assert len(verified) == len(proposed) == len(ask.verified[0].per_step_accepted) > 0
    assert not asked_for


def test_a_prompt_already_cached_verifies_its_draft_in_its_only_step(ask, oracle, rng):
    clip = random_clip(rng)
    # Blocks are cached whole and one token is always computed: one token beyond whole blocks.
    asked = next(
        question
        for question in (Asked(clip, "x" * n) for n in range(1, 80))
        if len(oracle.prompt_ids(question)) % BLOCK_SIZE == 1
    )
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    assert ask([asked], [[]]) == [expected]
    assert ask([asked], [expected]) == [expected]
    assert ask.verified[0].per_step_accepted[0] > 0
    assert num_from_verified_passes(ask.verified[0]) >= NUM_SPECULATIVE


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_corrupted_drafts_change_no_token_alone_or_in_a_batch(ask, oracle, rng, share):
    asked = random_asked(rng, 6)
    expected = [oracle.answer(a, MAX_TOKENS)[0] for a in asked]
    drafts = [corrupted(rng, answer, share) for answer in expected]
    assert [ask([a], [d])[0] for a, d in zip(asked, drafts, strict=True)] == expected
    assert ask(asked, drafts) == expected
    drafted = sum(sum(metrics.per_step_drafted) for metrics in ask.verified)
    accepted = sum(sum(metrics.per_step_accepted) for metrics in ask.verified)
    assert drafted > 0
    if share == 0.0:
        assert accepted == drafted
    else:
        assert accepted < drafted


HOSTILE = {
    "none": None,
    "a number": 7,
    "text": "the car",
    "negative": [-1] * 40,
    "beyond the vocabulary": [10**9] * 40,
    "placeholders": [512, 513, 514] * 10,
    "ten thousand tokens": list(range(3, 300)) * 34,
    "not integers": [3.5, "x", None, True],
    "empty": [],
}


@pytest.mark.parametrize("draft", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_draft_changes_no_token(ask, oracle, rng, draft):
    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    assert ask([asked], [draft]) == [expected]
    late = [*expected[:9], *draft] if isinstance(draft, list) else draft
    assert ask([asked], [late]) == [expected]


def test_drafts_of_different_lengths_share_a_batch(ask, oracle, rng):
    asked = random_asked(rng, 6)
    expected = [oracle.answer(a, MAX_TOKENS)[0] for a in asked]
    drafts = [answer[: 5 * i] for i, answer in enumerate(expected)]
    assert ask(asked, drafts) == expected


def test_no_draft_reaches_past_the_longest_answer_allowed(hooked, oracle, rng):
    from vllm import SamplingParams

    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    for most in (1, 2, 5):
        params = SamplingParams(
            temperature=0.0,
            max_tokens=most,
            detokenize=False,
            extra_args={"headstart": {"draft": expected}},
        )
        (output,) = hooked.generate(asked.prompt, params, use_tqdm=False)
        assert list(output.outputs[0].token_ids) == expected[:most]


def test_sampled_answers_keep_their_seeded_draws_without_drafts(hooked, drawn, sampled_prompt):
    """With the hooks idle, sampling draws what vLLM alone draws."""
    from vllm import SamplingParams

    assert len(np.unique(drawn)) > 1
    # On a CPU vLLM 0.32 ends, with us or without, when the prompt of a request with a seed comes
    # in several chunks. So it is cached before.
    greedy = SamplingParams(temperature=0.0, max_tokens=1, detokenize=False)
    for params in (greedy, SamplingParams(**SAMPLED)):
        (output,) = hooked.generate(sampled_prompt, params, use_tqdm=False)
    assert list(output.outputs[0].token_ids) == drawn


def test_top_k_does_not_end_the_engine_where_nothing_is_drafted(hooked, sampled_prompt):
    """vLLM 0.32 on a CPU ends there, whoever drafts; see `headstart.engine.vllm_patches`."""
    from vllm import SamplingParams

    params = SamplingParams(temperature=1.0, top_k=3, max_tokens=8, ignore_eos=True)
    (output,) = hooked.generate(sampled_prompt, params, use_tqdm=False)
    assert len(output.outputs[0].token_ids) == 8
