"""What our scheduler decides, seen without an engine."""

import json

import pytest

pytest.importorskip("vllm")
import torch
from vllm.v1.kv_cache_interface import MambaSpec

from headstart.engine.options import MAX_VERIFIED_TOKENS, Sources, check_drafting
from headstart.engine.prompt_pace import PromptPace
from headstart.engine.request_state import num_until_stop
from headstart.errors import DraftingError
from headstart.speculation.pass_costs import PassCosts
from rig.schedule_harness import (
    BLOCK_SIZE,
    Asked,
    Player,
    Turn,
    scheduler,
)
from rig.schedule_target import VOCABULARY, Mind, likely_answer
from tests.request_tables import traces

pytestmark = pytest.mark.engine

PROMPT = tuple(range(3, 3 + 2 * BLOCK_SIZE + 1))  # asked again, all but one token is cached


def asked(name, prompt=PROMPT, turns=None, session_id=None, told=None, priority=0, **params):
    extra_args = None if told is None else {"headstart": told}
    given = {"ignore_eos": True, "extra_args": extra_args, **params}
    return Asked(name, turns or (Turn(prompt, given),), priority, session_id)


def play(player, *requests):
    """What each said, and the steps it took."""
    steps = []
    for one in requests:
        player.add(one)
    while player.scheduler.requests:
        steps.append(player.step())
    return [player.said[one.name].turns[0] for one in requests], steps


def drafts_of(steps, name):
    return [step.scheduled_spec_decode_tokens.get(name, []) for step in steps]


def test_a_short_draft_on_a_cached_prompt_is_verified_as_it_is():
    player = Player(scheduler(8))
    play(player, asked("first"))
    right = likely_answer(PROMPT, 20)
    (said,), steps = play(player, asked("again", told={"draft": right[:3]}))
    assert said == right
    assert drafts_of(steps, "again")[0] == right[:3]
    assert steps[0].num_scheduled_tokens == {"again": 4}


def test_a_sampled_request_on_a_cached_prompt_gets_no_blanks():
    player = Player(scheduler(8))
    play(player, asked("first"))
    _, steps = play(player, asked("sampled", temperature=1.0, seed=1))
    assert [step.num_scheduled_tokens["sampled"] for step in steps] == [1] * 20


def test_no_draft_reaches_past_min_tokens():
    right = likely_answer(PROMPT, 20)
    player = Player(scheduler(8))
    _, steps = play(player, asked("least", told={"draft": right}, min_tokens=4))
    # Three and the step's own, which is the fourth; then as far as there is room.
    assert [len(draft) for draft in drafts_of(steps, "least")] == [3, 8, 6]


@pytest.mark.parametrize("arguments", [{"pipeline_parallel_size": 2}])
def test_several_batches_in_flight_are_refused_at_the_start(arguments):
    with pytest.raises(DraftingError, match="Leave out pipeline_parallel_size"):
        scheduler(8, **arguments)


def test_a_draft_longer_than_vllm_verifies_is_refused_where_it_is_given():
    check_drafting(MAX_VERIFIED_TOKENS)
    with pytest.raises(DraftingError, match="Give 128 or fewer"):
        check_drafting(MAX_VERIFIED_TOKENS + 1)
    with pytest.raises(DraftingError, match="Give 128 or fewer"):
        scheduler(MAX_VERIFIED_TOKENS + 1)


def test_the_bound_on_drafts_is_vllms():
    from vllm.v1.sample.rejection_sampler import MAX_SPEC_LEN

    assert MAX_VERIFIED_TOKENS == MAX_SPEC_LEN


class Fixed(PromptPace):
    """Leaves the same room for prompts beside every step of an answer."""

    def __init__(self, num_tokens):
        super().__init__(PassCosts())
        self._num_tokens = num_tokens

    def room(self, answers, prompts):
        return self._num_tokens if answers else None


def begin_answering(player, name, **given):
    player.add(asked(name, max_tokens=60, **given))
    while not player.scheduler.requests[name].num_output_tokens:
        player.step()


def test_beside_an_answer_no_more_of_a_prompt_is_computed_than_there_is_room_for():
    player = Player(scheduler(8))
    player.scheduler._paced_steps.pace = Fixed(10)
    begin_answering(player, "under way")
    other = tuple(range(40, 40 + 33))
    player.add(asked("other", other, told={"draft": likely_answer(other, 8)}))
    steps = [player.step() for _ in range(4)]
    assert all(step.num_scheduled_tokens["under way"] == 1 for step in steps)
    # The last three come with their draft, for which there is room all the same.
    assert [step.num_scheduled_tokens["other"] for step in steps] == [10, 10, 10, 3 + 8]
    assert drafts_of(steps, "other")[-1] == likely_answer(other, 8)


def test_a_prompt_that_was_begun_first_does_not_hold_up_an_answer():
    player = Player(scheduler(8, max_num_batched_tokens=20, max_num_seqs=4))
    begin_answering(player, "under way")
    long = tuple(range(50, 50 + 80))
    player.add(asked("long", long))
    player.scheduler._paced_steps.pace = Fixed(0)
    player.scheduler.running.reverse()
    for _ in range(5):
        step = player.step()
        assert step.num_scheduled_tokens == {"under way": 1}
    player.scheduler._paced_steps.pace = Fixed(15)
    step = player.step()
    assert step.num_scheduled_tokens == {"under way": 1, "long": 15}
    player.scheduler.running.reverse()  # as if the prompt had come first
    step = player.step()
    assert step.num_scheduled_tokens == {"under way": 1, "long": 15}


def test_the_prompt_of_a_sampled_request_is_not_split_on_a_cpu():
    player = Player(scheduler(8))
    player.scheduler._paced_steps.pace = Fixed(1)
    begin_answering(player, "under way")
    player.add(asked("sampled", tuple(range(9, 49)), temperature=1.0, seed=7))
    assert player.step().num_scheduled_tokens == {"under way": 1, "sampled": 40}


def test_prompts_alone_take_the_whole_step():
    player = Player(scheduler(8))
    player.scheduler._paced_steps.pace = Fixed(1)
    player.add(asked("alone"))
    assert player.step().num_scheduled_tokens == {"alone": len(PROMPT)}
    assert player.scheduler.max_num_scheduled_tokens == 256


class Recurrent(Player):
    """A target with one state a request, which vLLM takes back after refused drafts.

    Not in a step that also computes a part of the prompt: there every token counts as known.
    """

    def __init__(self, scheduler):
        super().__init__(scheduler)
        self._states = {}

    def _compute(self, name, num_tokens, draft):
        request = self.scheduler.requests[name]
        start = request.num_computed_tokens - num_tokens
        end = start + num_tokens - len(draft)
        mind = self._states[name] if start else Mind()
        minds = []
        for token in [*request.all_token_ids[start:end], *draft]:
            mind = mind.after(token)
            minds.append(mind)
        self._states[name] = mind
        self._undoes = {**getattr(self, "_undoes", {}), name: (end - start == 1, minds)}
        return minds[-1 - len(draft) :] if end == request.num_tokens else []

    def _take(self, step, output):
        for place, name in enumerate(output.req_ids):
            decodes, minds = self._undoes[name]
            said = output.sampled_token_ids[place]
            if decodes and said:
                self._states[name] = minds[len(said) - 1]
        super()._take(step, output)


def recurrent(max_draft_tokens):
    spec = MambaSpec(
        block_size=BLOCK_SIZE,
        shapes=((4,),),
        dtypes=(torch.float32,),
        num_speculative_blocks=max_draft_tokens,
    )
    layers = {"recurrent": spec}
    return Recurrent(scheduler(max_draft_tokens, layers=layers, enable_prefix_caching=False))


def test_a_recurrent_model_is_drafted_for_only_where_its_state_can_be_taken_back():
    right = likely_answer(PROMPT, 20)
    wrong = [*right[:2], right[2] + 1, *right[3:]]
    player = recurrent(4)
    (said,), steps = play(player, asked("one", told={"draft": wrong}))
    assert said == right
    drafts = drafts_of(steps, "one")
    assert drafts[0] == []
    assert sum(map(len, drafts)) > 4


def test_a_recurrent_target_of_these_tests_notices_a_draft_beside_its_prompt(monkeypatch):
    player = recurrent(4)
    player.scheduler.has_mamba_layers = False
    right = likely_answer(PROMPT, 20)
    wrong = [*right[:2], right[2] + 1, *right[3:]]
    (said,), _ = play(player, asked("one", told={"draft": wrong}))
    assert said != right


def test_a_block_that_nobody_filled_is_not_found_again():
    player = Player(scheduler(8, scheduling_policy="priority", max_num_batched_tokens=24))
    made = player.scheduler
    player.add(asked("one", max_tokens=8))
    player.step()
    (request,) = made.running
    assert request.num_computed_tokens == 24
    # As when the next step is laid out, and another request needs the blocks more urgently.
    made.kv_cache_manager.allocate_slots(request, BLOCK_SIZE // 2)
    made.running.remove(request)
    made._preempt_request(request, 0.0)
    while made.requests:
        player.step()
    assert request.num_preemptions == 1
    assert player.said["one"].turns[0] == likely_answer(PROMPT, 8)


def test_nothing_is_kept_of_an_answer_that_is_aborted_while_its_step_is_computed():
    """As vLLM's engine does it with stop strings, and for whoever does not wait any longer."""
    player = Player(scheduler(8))
    names = [f"aborted-{number}" for number in range(3)]
    for name in names:
        player.add(asked(name, told={"draft": [4, 5], "stream": "a"}, max_tokens=60))
        player.step()
        player.step()
        player.step(meanwhile=lambda name=name: player.abort(name))
    player.step()  # vLLM tells its workers
    assert traces(player.scheduler, names) == []


def test_vllms_own_name_of_a_session_is_a_streams_name():
    player = Player(scheduler(8))
    (first,), _ = play(player, asked("first", session_id="camera"))
    (again,), steps = play(player, asked("again", session_id="camera"))
    assert again == first
    assert sum(map(len, drafts_of(steps, "again"))) == len(first) - len(steps)
    apart = Player(scheduler(8, sources=Sources(abstain=False, warm=False)))
    play(apart, asked("first", session_id="camera"))
    for one, is_drafted in ((player, True), (apart, False)):
        _, steps = play(one, asked("elsewhere", session_id="another", max_tokens=4))
        assert any(drafts_of(steps, "elsewhere")) == is_drafted


def test_a_stream_is_drafted_for_from_its_tenants_streams_and_from_no_other_tenants():
    sources = Sources(("memory",), abstain=False)
    player, right = Player(scheduler(8, sources=sources)), likely_answer(PROMPT, 20)

    def drafts(name, **told):
        (said,), steps = play(player, asked(name, told={"question": "what?", **told}))
        assert said == right
        return [draft for draft in drafts_of(steps, name) if draft]

    assert not drafts("first", tenant="north", stream="front")
    # All that could quote it asks for the very words: the prompt, and so the answer, is the same.
    assert not drafts("stranger", tenant="south", stream="front")
    assert not drafts("nobody", stream="front")
    assert not drafts("no stream", tenant="north")
    assert drafts("another", tenant="north", stream="back")[0] == right[:8]
    assert drafts("no longer strange", tenant="south", stream="back")[0] == right[:8]


def test_a_memory_log_is_known_from_the_start_to_its_tenant_alone(tmp_path):
    right, file = likely_answer(PROMPT, 20), tmp_path / "site.jsonl"
    row = {"tenant": "north", "question": "what?", "target_tokens": [*right[:5], VOCABULARY, 7]}
    file.write_text(json.dumps(row))
    sources = Sources(("memory",), abstain=False, memory_log=file)
    player = Player(scheduler(8, sources=sources))
    for tenant, expected in (("south", []), ("north", right[:5])):
        told = {"tenant": tenant, "stream": "front", "question": "what?"}
        (said,), steps = play(player, asked(tenant, told=told))
        assert said == right
        assert drafts_of(steps, tenant)[0] == expected
    file.write_text("{\n")
    with pytest.raises(DraftingError, match="line 1"):
        scheduler(8, sources=sources)


def test_each_answer_to_a_growing_prompt_is_remembered_and_drafts_the_next():
    params = {"ignore_eos": True, "extra_args": {"headstart": {"stream": "a", "question": "q"}}}
    turns = tuple(Turn((5, 6, 7, 8, 9 + number), params) for number in range(3))
    player = Player(scheduler(8))
    growing = asked("grows", turns=turns)
    for number in range(4):  # the fourth says that there is no more
        player.add(growing, number)
    drafted = 0
    while player.scheduler.requests:
        step = player.step()
        drafted += sum(map(len, drafts_of([step], "grows")))
    assert len(player.said["grows"].reasons) == 3
    assert player.scheduler.remembered.num_answers == 3
    assert drafted > 0


def test_a_subclass_may_know_more_of_requests_from_their_beginning_to_their_end(monkeypatch):
    player = Player(scheduler(8))
    made, begun, alive = player.scheduler, [], []
    new_state, step_ended = made._new_state, made._step_ended

    def noted(request):
        begun.append(new_state(request))
        return begun[-1]

    monkeypatch.setattr(made, "_new_state", noted)
    monkeypatch.setattr(
        made, "_step_ended", lambda: alive.append(list(made._states.values())) or step_ended()
    )
    turns = tuple(Turn((5, 6, 7, 8, 9 + number), {"max_tokens": 2}) for number in range(2))
    growing = asked("grows", turns=turns)
    for number in range(3):
        player.add(growing, number)
    player.add(asked("drafted for", told={"stream": "a"}, max_tokens=2))
    while made.requests:
        player.step()
    names = [state.request.request_id for state in begun]
    # One whose prompt grows begins anew: nothing of the turn before is known of it.
    assert names == ["grows", "drafted for", "grows"]
    assert [state.drafted is not None for state in begun] == [False, True, False]
    first, drafted, second = begun
    assert alive[0] == [first, drafted]
    assert any(second in states for states in alive)
    assert not any(first in states and second in states for states in alive)
    assert alive[-1] == []
    assert drafted.drafted.is_over


WORDS = ["The", " car", " sto", "ps.", " A", " dog"]


def decode(tokens):
    return "".join(WORDS[token] for token in tokens)


@pytest.mark.parametrize(
    ("stops", "min_tokens", "expected"),
    [
        (["stops"], 0, 4),
        (["."], 0, 4),
        (["zebra"], 0, 0),
        (["T"], 0, 1),
        (["T"], 2, 0),  # said before it counted
        (["dog", "car"], 0, 2),
        (["dog", "car"], 3, 6),
    ],
)
def test_an_answer_ends_with_the_token_that_completes_a_stop_string(stops, min_tokens, expected):
    assert num_until_stop(range(6), stops, min_tokens, decode) == expected


def test_an_answer_ended_by_a_stop_string_is_learnt_and_an_aborted_one_is_not():
    class Tokenizer:
        def decode(self, tokens):
            return "".join(chr(ord("a") + token % 26) for token in tokens)

    player = Player(scheduler(8))
    player.scheduler.structured_output_manager.tokenizer = Tokenizer()
    right = likely_answer(PROMPT, 20)
    stop = Tokenizer().decode(right[3:5])
    for stops, remembered in (([stop], 1), (None, 0), (["."], 0)):
        name = f"stops at {stops}"
        told = {"stream": f"stream {stops}", "question": "q"}
        # vLLM's front end looks for stop strings, and aborts the request that has said one.
        player.add(asked(name, told=told, stop=stops))
        before = player.scheduler.remembered.num_answers
        for _ in range(10):
            player.step()
        player.abort(name)
        assert player.scheduler.remembered.num_answers - before == remembered, stops
    told = {"stream": f"stream {[stop]}", "question": "q"}
    (said,), steps = play(player, asked("again", told=told, max_tokens=5))
    assert said == right[:5]
    assert len(steps) == 1
