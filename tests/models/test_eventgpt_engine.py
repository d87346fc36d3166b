"""Our EventGPT on a real vLLM engine, held against a plain-torch reference."""

import numpy as np
import pytest
import torch

from headstart_events.eventgpt.view import event_prompt
from headstart_lab.tiny import TinyEventGpt
from tests.models.eventgpt_reference import EventGptReference
from tests.models.oracle import BLOCK_SIZE, QUESTIONS, num_same_tokens

pytestmark = pytest.mark.engine

NUM_INPUTS = 20
MAX_TOKENS = 12
UNKNOWN = 0


@pytest.fixture(scope="module", params=["tiny", "real_geometry"])
def checkpoint(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("eventgpt") / request.param
    size = TinyEventGpt() if request.param == "tiny" else TinyEventGpt.real_geometry()
    size.save(directory)
    return directory


@pytest.fixture(scope="module")
def reference(checkpoint, engine):
    return EventGptReference(checkpoint, engine.llm_engine.model_config.hf_config)


def random_slices(rng, num_slices=5):
    """Red and blue dots on white, as events are drawn."""
    height, width = rng.integers(60, 120, 2)
    slices = np.full((num_slices, height, width, 3), 255, dtype=np.uint8)
    for picture in slices:
        count = rng.integers(200, 2000)
        rows, columns = rng.integers(0, height, count), rng.integers(0, width, count)
        bright = rng.random(count) < rng.random()
        picture[rows, columns] = np.where(bright[:, None], (255, 0, 0), (0, 0, 255))
    return slices


def ask(engine, inputs):
    from vllm import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS, logprobs=-1, detokenize=False)
    prompts = [{"prompt": p, "multi_modal_data": {"video": s}} for s, p in inputs]
    return engine.generate(prompts, params, use_tqdm=False)


def logits(output):
    rows = output.outputs[0].logprobs
    return torch.tensor([[row[i].logprob for i in range(len(row))] for row in rows])


def relative_error(got, expected):
    return float((got - expected).abs().amax() / expected.abs().amax())


def test_tokens_and_logits_equal_the_reference(engine, reference, rng):
    inputs = [
        (random_slices(rng), event_prompt(f"{QUESTIONS[i % 4]} {rng.integers(1000)}"))
        for i in range(NUM_INPUTS)
    ]
    said = set()
    for (slices, prompt), output in zip(inputs, ask(engine, inputs), strict=True):
        tokens, expected, num_prompt_tokens = reference.answer(slices, prompt, MAX_TOKENS)
        assert len(output.prompt_token_ids) == num_prompt_tokens
        assert list(output.outputs[0].token_ids) == tokens
        assert relative_error(logits(output), expected) < 1e-4
        said.add(tuple(tokens))
    assert len(said) > NUM_INPUTS // 2


@pytest.mark.parametrize("times", [0, 2])
def test_the_adaptor_is_not_applied_another_number_of_times(engine, reference, rng, times):
    slices, prompt = random_slices(rng), event_prompt("What is ahead?")
    (output,) = ask(engine, [(slices, prompt)])
    _, once, _ = reference.answer(slices, prompt, 1)
    _, other, _ = reference.answer(slices, prompt, 1, num_adaptors=times)
    assert relative_error(logits(output)[:1], once) < 1e-4
    assert relative_error(logits(output)[:1], other) > 1e-2


def test_another_number_of_slices_takes_its_own_number_of_tokens(engine, reference, rng):
    prompt = event_prompt("What is ahead?")
    inputs = [(random_slices(rng, n), prompt) for n in (5, 3, 8)]
    for (slices, _), output in zip(inputs, ask(engine, inputs), strict=True):
        tokens, _, num_prompt_tokens = reference.answer(slices, prompt, MAX_TOKENS)
        assert len(output.prompt_token_ids) == num_prompt_tokens
        assert list(output.outputs[0].token_ids) == tokens


def test_the_second_question_on_a_window_computes_only_the_text_after_it(engine, rng):
    engine.reset_prefix_cache()
    slices = random_slices(rng)
    first, second = (
        ask(engine, [(slices, event_prompt(question))])[0] for question in ("Who?", "What now?")
    )
    same = num_same_tokens(first, second)
    assert first.num_cached_tokens == 0
    assert second.num_cached_tokens == same // BLOCK_SIZE * BLOCK_SIZE


def test_a_changed_slice_shares_nothing_of_the_window(engine, rng):
    """Pooling mixes the slices, so one pixel in the last changes every token of the window."""
    engine.reset_prefix_cache()
    slices, prompt = random_slices(rng), event_prompt("Who?")
    changed = slices.copy()
    changed[-1, :8] = 0
    (first,), (second,) = ask(engine, [(slices, prompt)]), ask(engine, [(changed, prompt)])
    window_start = first.prompt_token_ids.index(UNKNOWN)  # holds the events' place
    assert second.num_cached_tokens == window_start // BLOCK_SIZE * BLOCK_SIZE
    # An untrained model may say the same to both; its scores cannot be the same.
    assert relative_error(logits(second)[0], logits(first)[0]) > 1e-3
