"""The hooks know no particular model: a plain Llama and a BLIP-2 with drafts."""

import numpy as np
import pytest

from headstart.engine.options import SchedulerOptions, Sources
from headstart.engine.request_record import Report
from headstart.engine.startup import drafting_arguments
from headstart_lab.tiny import PLACEHOLDERS
from headstart_lab.tokenizer import train_tokenizer
from tests.models.oracle import BLOCK_SIZE, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 24
SENTENCES = ("The car stops at the light.", "Nobody is on the road, and it rains.")


def save_llama(directory):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = train_tokenizer(SENTENCES, max_pieces=300)
    tokenizer.save_pretrained(directory)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.25,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


def save_blip2(directory):
    import torch
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        Blip2QFormerConfig,
        Blip2VisionConfig,
        BlipImageProcessor,
        OPTConfig,
    )

    tokenizer = train_tokenizer(SENTENCES, max_pieces=300, added_tokens=PLACEHOLDERS)
    tokenizer.pad_token = "<pad>"
    Blip2Processor(
        BlipImageProcessor(size={"height": 28, "width": 28}), tokenizer, num_query_tokens=4
    ).save_pretrained(directory)
    torch.manual_seed(1)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2}
    image, pad = tokenizer.convert_tokens_to_ids(["<image>", "<pad>"])
    config = Blip2Config(
        vision_config=Blip2VisionConfig(
            **sizes, num_hidden_layers=2, image_size=28, patch_size=14, initializer_range=0.2
        ).to_dict(),
        qformer_config=Blip2QFormerConfig(
            **sizes, num_hidden_layers=2, encoder_hidden_size=64, initializer_range=0.2
        ).to_dict(),
        text_config=OPTConfig(
            vocab_size=-(-len(tokenizer) // 64) * 64,
            hidden_size=64,
            ffn_dim=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=256,
            word_embed_proj_dim=64,
            init_std=0.3,
            pad_token_id=pad,
            bos_token_id=1,
            eos_token_id=2,
        ).to_dict(),
        num_query_tokens=4,
        image_token_index=image,
    )
    Blip2ForConditionalGeneration(config).save_pretrained(directory)


TARGETS = {"llama": save_llama, "blip2": save_blip2}


class Target:
    """vLLM with our flags on one of the models, and its prompts."""

    def __init__(self, name, directory):
        from vllm import LLM

        self.name = name
        TARGETS[name](directory)
        self.llm = LLM(
            str(directory),
            dtype="float32",
            enforce_eager=True,
            block_size=BLOCK_SIZE,
            max_num_seqs=6,
            max_model_len=160,
            **drafting_arguments(16, SchedulerOptions(Sources(abstain=False)), {}),
        )

    def prompts(self, rng, count):
        texts = [f"What is on road {rng.integers(100)}?" for _ in range(count)]
        if self.name == "llama":
            return texts
        return [
            {"prompt": text, "multi_modal_data": {"image": random_clip(rng, 1)[0]}}
            for text in texts
        ]

    def say(self, prompts, asks=None, **params):
        """Token ids, and what each request reported."""
        from vllm import SamplingParams

        sampling = [
            SamplingParams(
                **{"temperature": 0.0, "max_tokens": MAX_TOKENS, "ignore_eos": True, **params},
                detokenize=False,
                extra_args=None if ask is None else {"headstart": ask},
            )
            for ask in asks or [None] * len(prompts)
        ]
        outputs = self.llm.generate(prompts, sampling, use_tqdm=False)
        reports = [Report.parse(output.kv_transfer_params) for output in outputs]
        return [list(output.outputs[0].token_ids) for output in outputs], reports


@pytest.fixture(scope="module", params=TARGETS)
def target(request, tmp_path_factory):
    target = Target(request.param, tmp_path_factory.mktemp(request.param))
    yield target
    target.llm.llm_engine.engine_core.shutdown()


def test_drafts_right_and_wrong_change_no_token(target, rng):
    prompts = target.prompts(rng, 6)
    alone = [target.say([prompt])[0][0] for prompt in prompts]
    drafts = [
        [t if rng.random() < 0.8 else int(rng.integers(3, 200)) for t in said] for said in alone
    ]
    said, reports = target.say(prompts, [{"draft": draft} for draft in drafts])
    assert said == alone
    assert all(report.verdicts for report in reports)
    said, reports = target.say(prompts, [{"draft": answer} for answer in alone])
    assert said == alone
    assert sum(sum(report.accepted) for report in reports) > 0
    for report, answer in zip(reports, said, strict=True):
        assert sum(report.accepted) + len(report.accepted) >= len(answer)


def test_what_was_said_on_a_stream_is_drafted_there(target, rng):
    prompts = target.prompts(rng, 2)
    ask = {"stream": "camera", "question": "road"}
    for prompt in prompts:
        first, _ = target.say([prompt], [ask])
        again, (report,) = target.say([prompt], [ask])
        assert again == first
        assert report.verdicts[0].draft.source == "memory"
        assert report.accepted[0] > 0


def test_a_sampled_answer_gets_no_draft_where_that_is_not_safe(target, rng):
    from vllm import SamplingParams

    from headstart.engine.withheld_drafts import verifies_sampled

    if verifies_sampled():
        pytest.skip("this vLLM verifies drafts of sampled answers rightly")
    prompts = target.prompts(rng, 2)
    alone = [target.say([prompt])[0][0] for prompt in prompts]
    params = [
        SamplingParams(
            temperature=temperature,
            max_tokens=MAX_TOKENS,
            ignore_eos=True,
            detokenize=False,
            seed=7 if temperature else None,
            extra_args={"headstart": {"draft": draft}},
        )
        for temperature, draft in zip((0.0, 1.0), alone, strict=True)
    ]
    greedy, sampled = target.llm.generate(prompts, params, use_tqdm=False)
    assert list(greedy.outputs[0].token_ids) == alone[0]
    # The greedy one may have had its draft verified before the other came, and that is right.
    assert not Report.parse(sampled.kv_transfer_params).verdicts
    assert len(np.unique(sampled.outputs[0].token_ids)) > 1


def test_what_a_llama_says_with_drafts_is_what_transformers_says(target, rng):
    if target.name != "llama":
        pytest.skip("Video-LLaVA and Llama are held against transformers")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    directory = target.llm.llm_engine.model_config.model
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    for prompt in target.prompts(rng, 4):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=MAX_TOKENS,
            do_sample=False,
            eos_token_id=-1,
        )
        expected = out[0, ids.shape[1] :].tolist()
        assert target.say([prompt], [{"draft": expected}])[0] == [expected]
