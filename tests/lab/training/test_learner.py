"""What is saved is what was trained, under the names that vLLM's models take."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoTokenizer,
    VideoLlavaForConditionalGeneration,
)

from headstart.models.checkpoint import check_checkpoint
from headstart.models.video_llava.view import canonical_name, expected_shapes, video_geometry
from headstart_events.eventgpt.config import EventChatConfig
from headstart_events.eventgpt.view import EventGptView, published_shapes
from headstart_lab.training.generation import answer
from headstart_lab.training.sizes import PairSize
from tests.models.eventgpt_reference import EventGptReference


def pictures(num):
    return np.random.default_rng(num).integers(0, 256, (num, 28, 28, 3), dtype=np.uint8)


def test_the_target_s_checkpoint_is_complete_and_says_the_same(learners, tmp_path, tokenizer):
    learner = learners[0]
    learner.model.to(torch.bfloat16).float()  # what bf16 keeps
    learner.save(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    check_checkpoint(tmp_path, expected_shapes(config), canonical_name)
    assert video_geometry(config).num_pictures == 2
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == tokenizer.get_vocab()
    assert AutoImageProcessor.from_pretrained(tmp_path).crop_size["height"] == 28
    stored = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.bfloat16}
    twins = [name for name in stored if "image_tower" in name]
    assert twins
    for name in twins:
        assert torch.equal(stored[name], stored[name.replace("image_tower", "video_tower")])
    assert next(learner.model.parameters()).dtype == torch.float32

    # transformers' own generate, one question at a time.
    model = VideoLlavaForConditionalGeneration.from_pretrained(tmp_path, dtype=torch.float32)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    questions = ["What is ahead of us?", "Is it safe?"]
    said = answer(learner, pictures(2), questions, max_tokens=8, dtype=torch.float32)
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    (values,) = processor(images=list(pictures(2)), return_tensors="pt").values()
    assert all(said)
    for question, ids in zip(questions, said, strict=True):
        prompt = learner.template.prompt(question, learner.num_tokens(2))
        whole = [*prompt.before, *[learner.template.placeholder] * prompt.num_pictures]
        whole = torch.tensor([[*whole, *prompt.after]])
        expected = model.generate(
            input_ids=whole,
            attention_mask=torch.ones_like(whole),
            pixel_values_videos=values[None],
            max_new_tokens=8,
            do_sample=False,
        )[0, whole.shape[1] :].tolist()
        assert ids == [i for i in expected if i != tokenizer.eos_token_id]


def test_the_drafter_s_checkpoint_has_the_published_names_and_says_the_same(learners, tmp_path):
    learner = learners[1]
    # As after training: white adds something again.
    with torch.no_grad():
        weight = learner._embeddings.patch_embedding.weight
        weight += torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)) * 0.02
    learner.save(tmp_path, torch.float32)
    config = EventChatConfig(**json.loads((tmp_path / "config.json").read_text()))
    shapes = published_shapes(config)
    state = learner.model.state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == shapes
    EventGptView.from_config(config).check_checkpoint(tmp_path)
    assert config.num_text_tokens == learner.tokenizer.convert_tokens_to_ids("<image>")
    assert config.architectures == ["EventChatModel"]

    from headstart_events.eventgpt.view import event_prompt

    # Written apart from our code, from the published description.
    reference = EventGptReference(tmp_path, config)
    seen = pictures(2)
    questions = ["What is ahead of us?", "Is it safe?"]
    with torch.no_grad():
        torch.testing.assert_close(
            learner.encode_clip(seen), reference.event_tokens(seen), atol=1e-4, rtol=1e-3
        )
    said = answer(learner, seen, questions, max_tokens=8, dtype=torch.float32)
    assert all(said)
    for question, ids in zip(questions, said, strict=True):
        expected, _, _ = reference.answer(seen, event_prompt(question), max_tokens=8)
        assert ids == [i for i in expected if i != learner.tokenizer.eos_token_id]


def test_a_drafter_in_bf16_sees_the_same(learners, tmp_path):
    learner = learners[1]
    before = learner.model.state_dict()["lm_head.weight"].clone()
    learner.save(tmp_path)
    config = EventChatConfig(**json.loads((tmp_path / "config.json").read_text()))
    reference = EventGptReference(tmp_path, config)
    reference.weights = {name: each.float() for name, each in reference.weights.items()}
    white = np.full((2, 28, 28, 3), 255, dtype=np.uint8)
    white[:, 3:9, 5:20] = (255, 0, 0)
    with torch.no_grad():
        seen, expected = learner.encode_clip(white), reference.event_tokens(white)
    assert (seen - expected).abs().max() < 0.02 * expected.abs().max()
    assert torch.equal(learner.model.state_dict()["lm_head.weight"], before)


def test_white_paper_is_nothing_to_a_drafter(learners):
    """Or else every step moves all patches alike, and the tower goes blind."""
    embeddings = learners[1]._embeddings
    paper = learners[1]._paper
    with torch.no_grad():
        assert (embeddings.patch_embedding.weight * paper).sum(dim=(1, 2, 3)).abs().max() < 1e-4


def test_the_default_pair_fits_its_package():
    class Tokenizer:
        bos_token_id, eos_token_id, pad_token_id = 1, 2, 4002

        def __len__(self):
            return 4006

        def convert_tokens_to_ids(self, tokens):
            return list(range(4000, 4000 + len(tokens))) if isinstance(tokens, list) else 4000

    size = PairSize()
    assert size.target.num_tokens == 520
    assert size.drafter.num_slices + size.drafter.tower.tokens_per_picture == 70
    with torch.device("meta"):
        models = [size.target.build(Tokenizer()), size.drafter.build(Tokenizer())]
    numbers = sum(tensor.numel() for model in models for tensor in model.state_dict().values())
    assert 2 * numbers <= 80e6
