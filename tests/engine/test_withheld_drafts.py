"""Which requests keep drafts back, and until when; the words are compared in `test_promise.py`."""

import pytest

pytest.importorskip("vllm")
from vllm.v1.request import RequestStatus

from rig.schedule_harness import Asked, Player, Turn, scheduler
from rig.schedule_target import likely_answer

pytestmark = pytest.mark.engine

PROMPT = tuple(range(3, 40))
OTHER = tuple(range(40, 70))
FROM_ALL = {
    "thinking_token_budget": {"thinking_token_budget": 4},
    "logprob_token_ids": {"logprob_token_ids": [5, 6, 7]},
    "logprob_token_ids beside logprobs": {"logprob_token_ids": [5, 6, 7], "logprobs": 3},
    "sampled": {"temperature": 1.0, "seed": 7},
}
FROM_ITSELF = {"prompt_logprobs": {"prompt_logprobs": 1}}


def asked(name, prompt=PROMPT, at_once=True, **params):
    right = likely_answer(prompt, 40)
    told = {"headstart": {"draft": right}} if at_once else None
    given = {"max_tokens": 40, "ignore_eos": True, "extra_args": told, **params}
    return Asked(name, (Turn(prompt, given),))


def drafted(player):
    """For whom the next step verifies drafts."""
    return set(player.step().scheduled_spec_decode_tokens)


@pytest.fixture(scope="module")
def drafting():
    return scheduler(4, enable_prefix_caching=False)


@pytest.fixture
def player(drafting):
    """Of one scheduler, which is empty again after each test."""
    player = Player(drafting)
    yield player
    for name in list(drafting.requests):
        player.abort(name)
    assert drafting._withheld._num_from_all == drafting._withheld._num_sampled == 0


def stop(player, name):
    """To the end of its answer."""
    while name in player.scheduler.requests:
        assert not drafted(player)


def abort(player, name):
    player.abort(name)


def abort_in_a_step(player, name):
    """As vLLM does what it hears while the workers compute."""
    step = player.scheduler.schedule()
    output = player._execute(step)
    player.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
    player.scheduler.update_from_output(step, output)


@pytest.mark.parametrize("end", [stop, abort, abort_in_a_step])
@pytest.mark.parametrize("params", FROM_ALL.values(), ids=FROM_ALL)
def test_one_request_keeps_everybodys_drafts_back_until_it_ends(player, params, end):
    player.add(asked("drafted"))
    assert drafted(player) == {"drafted"}
    player.add(asked("keeps back", OTHER, at_once=False, **{**params, "max_tokens": 3}))
    assert not drafted(player)
    end(player, "keeps back")
    assert drafted(player) == {"drafted"}


@pytest.mark.parametrize("params", FROM_ITSELF.values(), ids=FROM_ITSELF)
def test_a_request_that_is_left_to_vllm_keeps_nobody_elses_draft_back(player, params):
    player.add(asked("left to vLLM", OTHER, **params))
    player.add(asked("drafted"))
    assert [drafted(player) for _ in range(4)] == [{"drafted"}] * 4


@pytest.mark.parametrize("params", FROM_ALL.values(), ids=FROM_ALL)
def test_a_request_that_goes_on_with_other_settings_keeps_back_by_those(player, params):
    with_them = Turn(OTHER, {"max_tokens": 2, "ignore_eos": True, **params})
    without = Turn(OTHER, {"max_tokens": 2, "ignore_eos": True})
    growing = Asked("growing", (with_them, without, without))
    player.add(asked("drafted"))
    player.add(growing)
    assert not drafted(player)
    while not player.said["growing"].reasons and len(player.said["growing"].turns[0]) < 2:
        assert not drafted(player)
    player.add(growing, 1)
    assert "drafted" in drafted(player)
