"""Packed questions teach exactly what they would teach one by one."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from headstart.errors import HeadstartError
from headstart.models.video_llava.view import video_prompt
from headstart_events.eventgpt.view import event_prompt
from headstart_lab.training.packing import Turn, pack
from headstart_lab.training.template import Prompt, Template

NUM_PICTURES = 10
TURNS = [
    ("What is ahead of us?", "A red car drives ahead of us."),
    ("Is it safe to go on?", "No."),
    ("Is anyone crossing?", "No, two people are crossing from the left, a car is ahead."),
]


def turns_of(learner):
    template, num = learner.template, learner.num_tokens(2)
    return [Turn(template.prompt(q, num), template.answer(a)) for q, a in TURNS]


def pictures_of(learner):
    num = getattr(learner.size, "num_frames", None) or learner.size.num_slices
    return np.random.default_rng(0).integers(0, 256, (num, 28, 28, 3), dtype=np.uint8)


def alone(learner, turn, pictures):
    """The loss of one question by transformers' own forward, labels and all."""
    prompt = turn.prompt
    ids = [*prompt.before, *[learner.template.placeholder] * prompt.num_pictures, *prompt.after]
    labels = torch.tensor([[-100] * len(ids) + list(turn.answer)])
    ids = torch.tensor([ids + list(turn.answer)])
    learner.llama.config._attn_implementation = "sdpa"
    if learner.name == "target":
        values = learner._processor(images=list(pictures), return_tensors="pt")
        (values,) = values.values()
        logits = learner.model(input_ids=ids, pixel_values_videos=values[None]).logits
    else:
        values = learner._processor(images=list(pictures), return_tensors="pt")["pixel_values"]
        embeds = learner.llama.get_input_embeddings()(ids)
        start = len(prompt.before)
        seen = learner.model.event_tokens(values - learner._paper[:, :, :1, :1])[None]
        rest = embeds[:, start + prompt.num_pictures :]
        embeds = torch.cat([embeds[:, :start], seen, rest], dim=1)
        logits = learner.model(inputs_embeds=embeds).logits
    return torch.nn.functional.cross_entropy(
        logits[0, :-1].float(), labels[0, 1:], ignore_index=-100, reduction="sum"
    )


@pytest.mark.parametrize("which", [0, 1], ids=["target", "drafter"])
def test_packed_loss_and_gradient_are_the_sum_of_the_questions_alone(learners, which):
    learner = learners[which]
    turns, pictures = turns_of(learner), pictures_of(learner)
    packed = learner.loss(pack(turns), pictures)
    packed.backward()
    gradients = {
        n: p.grad.clone() for n, p in learner.model.named_parameters() if p.grad is not None
    }
    learner.model.zero_grad()
    apart = sum(alone(learner, turn, pictures) for turn in turns)
    apart.backward()
    assert packed.item() == pytest.approx(apart.item(), rel=1e-5)
    for name, parameter in learner.model.named_parameters():
        if parameter.grad is not None and parameter.grad.abs().max() > 0:
            torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-3, atol=1e-4)
    assert any("patch_embedding" in name for name in gradients)


def test_each_question_has_the_positions_it_would_have_alone():
    packed = pack([Turn(Prompt((1, 5), 3, (6,)), (7, 2)), Turn(Prompt((1, 5), 3, (8, 9)), (2,))])
    assert packed.questions.tolist() == [6, 7, 8, 9]
    assert packed.positions.tolist() == [0, 1, 2, 3, 4, 5, 6, 5, 6]
    assert packed.scored.tolist() == [5, 6, 8]
    assert packed.targets.tolist() == [7, 2, 2]
    assert packed.prefix_length == 5
    assert packed.lengths == (2, 2)


def test_what_cannot_be_packed_is_refused():
    with pytest.raises(HeadstartError, match="differ before the clip"):
        pack([Turn(Prompt((1,), 3, (6,)), (2,)), Turn(Prompt((4,), 3, (6,)), (2,))])
    with pytest.raises(HeadstartError, match="at least one"):
        pack([])


def expand(ids, placeholder, num):
    return [t for i in ids for t in ([i] * num if i == placeholder else [i])]


def whole(template, question):
    prompt = template.prompt(question, NUM_PICTURES)
    return [*prompt.before, *[template.placeholder] * prompt.num_pictures, *prompt.after]


def test_the_target_is_taught_the_ids_of_the_whole_prompt(tokenizer):
    template = Template.of_target(tokenizer)
    ids = tokenizer.encode(video_prompt("Is it safe?"))
    video = tokenizer.convert_tokens_to_ids("<video>")
    assert whole(template, "Is it safe?") == expand(ids, video, NUM_PICTURES)
    assert template.prompt("Is it safe?", NUM_PICTURES).before[0] == tokenizer.bos_token_id


@pytest.mark.parametrize("named", [True, False], ids=["placeholder is a token", "it is not"])
def test_the_drafter_is_taught_the_ids_that_vllm_makes(tokenizer, named):
    """By the processor's own method, on what the tokenizer makes of the prompt."""
    processing = pytest.importorskip("headstart_events.eventgpt.model")
    from types import SimpleNamespace

    from headstart_lab.tokenizer import train_tokenizer

    if not named:
        tokenizer = train_tokenizer(["USER: Is it safe? ASSISTANT: No."], max_pieces=300)
    template = Template.of_drafter(tokenizer)
    info = SimpleNamespace(get_tokenizer=lambda: tokenizer)
    ids = processing.EventGptMultiModalProcessor._postprocess_prompt(
        SimpleNamespace(info=info), tokenizer.encode(event_prompt("Is it safe?"))
    )
    placeholder = processing.EventGptProcessingInfo.get_placeholder_id(info)
    assert ids.count(placeholder) == 1
    assert whole(template, "Is it safe?") == expand(ids, placeholder, NUM_PICTURES)


def test_an_answer_is_what_decoding_gives_back(tokenizer):
    template = Template.of_target(tokenizer)
    ids = template.answer("A red car, ahead.")
    assert ids[-1] == tokenizer.eos_token_id
    assert template.decode(list(ids)) == "A red car, ahead."
