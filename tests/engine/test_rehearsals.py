"""Rehearsals in the scheduler: what they say drafts the answer, and nobody pays for them."""

import pytest

pytest.importorskip("vllm")
from headstart.engine import rehearsals
from headstart.engine.options import Sources
from headstart.engine.request_record import Ending
from rig.schedule_harness import BLOCK_SIZE, Asked, Player, Turn, scheduler
from rig.schedule_target import likely_answer

pytestmark = pytest.mark.engine

EARLY = tuple(range(3, 3 + 2 * BLOCK_SIZE))
WHOLE = (*EARLY, *range(60, 60 + BLOCK_SIZE))
ANY = Sources(abstain=False, rehearsals=None)


def asked(name, prompt=WHOLE, max_tokens=20, priority=0, **told):
    """A live question about window 7, or with ``rehearses`` an early answer to it."""
    tags = {"stream": "front", "question": "What?", "window": "7", **told}
    params = {"max_tokens": max_tokens, "ignore_eos": True, "extra_args": {"headstart": tags}}
    return Asked(name, (Turn(prompt, params),), priority)


def rehearsal(name, prompt=EARLY, **told):
    return asked(name, prompt, rehearses=True, **told)


def plain(name, prompt=tuple(range(90, 110)), max_tokens=20, priority=0):
    return Asked(name, (Turn(prompt, {"max_tokens": max_tokens, "ignore_eos": True}),), priority)


def play(player, *requests):
    for one in requests:
        player.add(one)
    steps = []
    while player.scheduler.requests:
        steps.append(player.step())
    return steps


def drafts_of(steps, name):
    return [step.scheduled_spec_decode_tokens.get(name, []) for step in steps]


@pytest.fixture
def player():
    return Player(scheduler(8, sources=ANY))


def test_what_a_rehearsal_says_drafts_the_answer(player):
    play(player, rehearsal("early"))
    early = player.said["early"].turns[0]
    steps = play(player, asked("answer"))
    assert drafts_of(steps, "answer")[0] == early[:8]
    assert player.said["answer"].turns[0] == likely_answer(WHOLE, 20)


def test_an_answer_ends_its_rehearsal_and_takes_its_words(player):
    player.add(rehearsal("early"))
    for _ in range(6):
        player.step()
    said = list(player.scheduler.requests["early"].output_token_ids)
    player.add(asked("answer"))
    step = player.step()
    assert "early" not in step.num_scheduled_tokens
    assert step.scheduled_spec_decode_tokens["answer"] == said[:8]
    assert player.scheduler._rehearsals.counts.endings == {Ending.CUT_OFF: 1}
    play(player)
    assert player.said["early"].reasons == ["abort"]
    assert player.said["answer"].turns[0] == likely_answer(WHOLE, 20)


def test_each_rehearsal_drafts_the_next(player):
    play(player, rehearsal("first"))
    first = player.said["first"].turns[0]
    steps = play(player, rehearsal("second", WHOLE))
    assert drafts_of(steps, "second")[0] == first[:8]


def test_one_that_was_cut_off_leaves_its_words_and_then_those_of_the_one_before(player):
    play(player, rehearsal("first"))
    first = player.said["first"].turns[0]
    player.add(rehearsal("second"))  # the same words, of which it confirms some
    player.step()
    confirmed = len(player.scheduler.requests["second"].output_token_ids)
    assert 0 < confirmed < 20
    steps = play(player, asked("answer", EARLY))
    assert drafts_of(steps, "answer") == [first[:8], first[9:17], first[18:19]]


def test_other_windows_questions_and_tenants_have_nothing_of_it():
    player = Player(scheduler(8, sources=Sources(drafters=(), abstain=False)))
    play(player, rehearsal("early"))
    others = {"window": "8"}, {"question": "Where?"}, {"stream": "back"}, {"tenant": "b"}
    for number, told in enumerate(others):
        steps = play(player, asked(f"other {number}", EARLY, **told))
        assert not any(drafts_of(steps, f"other {number}"))
    steps = play(player, asked("its own", EARLY))
    assert any(drafts_of(steps, "its own"))


def test_not_one_entry_of_memory_comes_from_a_rehearsal():
    player = Player(scheduler(8, sources=ANY))
    memory = next(one for one in player.scheduler._cascade.drafters if one.name == "memory")
    play(player, rehearsal("early"))
    assert player.said["early"].turns[0] == likely_answer(EARLY, 20)
    assert memory.num_answers == 0
    play(player, asked("answer"))
    assert memory.num_answers == 1


def test_a_rehearsal_is_drafted_by_memory(player):
    play(player, asked("before", EARLY, window="6"))
    steps = play(player, rehearsal("early"))
    assert any(drafts_of(steps, "early"))


def test_no_source_is_judged_by_a_rehearsal(player):
    play(player, asked("before", window="6"))
    earnings = player.scheduler._cascade.earnings
    before = repr(vars(earnings))
    play(player, rehearsal("early"))
    assert repr(vars(earnings)) == before


def test_beside_others_a_rehearsal_is_left_out_until_they_are_done(player):
    player.add(rehearsal("early"))
    player.step()
    player.add(plain("other"))
    while "other" in player.scheduler.requests:
        assert "early" not in player.step().num_scheduled_tokens
    assert "early" in player.step().num_scheduled_tokens
    play(player)
    assert player.said["early"].turns[0] == likely_answer(EARLY, 20)


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_a_rehearsal_never_stands_before_an_answer(policy):
    player = Player(scheduler(8, sources=ANY, max_num_seqs=1, scheduling_policy=policy))
    player.add(rehearsal("early", priority=-5))
    player.add(plain("other", priority=5))
    assert list(player.step().num_scheduled_tokens) == ["other"]
    play(player)
    assert player.said["early"].turns[0] == likely_answer(EARLY, 20)


def test_a_rehearsal_is_over_before_the_next_frame_is_due(player, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(player.scheduler._rehearsals, "_clock", lambda: now[0])
    player.add(rehearsal("early", until_s=101.0))
    for _ in range(3):
        player.step()
    now[0] = 101.1
    step = player.step()
    assert not step.num_scheduled_tokens
    assert player.said["early"].reasons == ["abort"]
    assert not player.scheduler.requests


def test_no_step_of_rehearsals_has_more_tokens_than_its_cap(player):
    longest = list(range(3, 3 + 8 * BLOCK_SIZE))
    for number in range(4):
        prompt = tuple(longest[number:] + longest[:number])
        player.add(rehearsal(f"early {number}", prompt, question=f"{number}"))
    sizes = [step.total_num_scheduled_tokens for step in play(player)]
    assert max(sizes) == rehearsals.MAX_PASS_TOKENS
    assert sum(sizes) > 4 * len(longest)


def test_rehearsals_end_before_anybody_is_put_back():
    """The same requests, with and without rehearsals: the same steps, and nobody is preempted."""

    def played(num_rehearsals):
        player = Player(scheduler(8, num_blocks=24, sources=ANY))
        for number in range(num_rehearsals):
            player.add(rehearsal(f"early {number}", question=f"{number}"))
            player.step()
        steps = play(player, *(plain(f"{number}", WHOLE[number:], 40) for number in range(3)))
        names = [sorted(step.num_scheduled_tokens) for step in steps]
        return player, [[one for one in step if one.isdigit()] for step in names]

    alone, expected = played(0)
    beside, steps = played(3)
    assert beside.counts.preemptions == alone.counts.preemptions == 0
    assert steps[: len(expected)] == expected
    assert beside.scheduler._rehearsals.counts.endings[Ending.NO_ROOM] > 0


def test_rehearsals_take_their_share_of_the_engines_time_and_no_more(monkeypatch):
    player = Player(scheduler(8, sources=Sources(abstain=False, rehearsals=0.1)))
    clock, now = player.scheduler._clock, [0.0]
    monkeypatch.setattr(clock, "_clock", lambda: now[0])

    def step():
        laid_out = player.scheduler.schedule()
        output = player._execute(laid_out)
        now[0] += 0.1
        player._take(laid_out, output)

    for number in range(40):
        player.add(rehearsal(f"early {number}", question=f"{number}"))
        while player.scheduler.requests:
            step()
    counts = player.scheduler._rehearsals.counts
    assert counts.endings[Ending.NO_TIME] > 20
    assert counts.seconds <= rehearsals.MAX_SAVED_S
    player.add(plain("other", max_tokens=60))
    while player.scheduler.requests:
        step()
    before_s = counts.seconds
    player.add(rehearsal("once more"))
    while player.scheduler.requests:
        step()
    assert 0 < counts.seconds - before_s <= 0.1 * 60 * 0.1 + 0.1


def test_without_a_share_nothing_is_rehearsed():
    player = Player(scheduler(8, sources=Sources(abstain=False, rehearsals=0)))
    steps = play(player, rehearsal("early"))
    assert not any(step.num_scheduled_tokens for step in steps)
    assert player.said["early"].reasons == ["abort"]


def test_a_rehearsal_of_no_window_is_a_plain_request(player):
    play(player, rehearsal("early", window=""))
    assert player.said["early"].turns[0] == likely_answer(EARLY, 20)
    assert not player.scheduler._rehearsals.counts.endings
