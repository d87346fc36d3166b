"""A drafter that dies, hangs or lies: the same tokens, and the answer arrives."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zmq

from headstart import Clip, Headstart, Sources, Video
from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import ChannelLease, DraftChannel, send
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.errors import EngineStartError
from headstart.media.events import Events, SensorSize
from headstart.speculation.draft import Draft
from headstart_events.beside.event_model import EventDraftModel
from headstart_events.beside.process import YIELDING, EventModelProcess
from rig.waiting import wait_until
from tests.events.beside.drafts import (
    PATIENCE_S,
    ask_target,
    drafter_of,
    drafting,
    hear_first_draft,
)
from tests.events.beside.test_event_draft_model import ARGUMENTS
from tests.models.oracle import random_asked

pytestmark = pytest.mark.engine

MAX_TOKENS = 40
SENSOR = SensorSize(96, 72)


@pytest.fixture(scope="module")
def misled(tiny_target, tiny_drafter):
    """A target beside a drafter that never foresees it, and is verified all the same."""
    with Headstart(
        tiny_target,
        draft_model=EventDraftModel(tiny_drafter, ARGUMENTS),
        # Else whoever is wrong twice is not asked again, and the rest would show nothing.
        sources=Sources(abstain=False),
        max_draft_tokens=16,
        vllm=ARGUMENTS,
    ) as running:
        yield running


@pytest.fixture
def process(misled, rng):
    """The drafter's process, up; whatever a test does to it, the next finds one up again."""
    process = drafter_of(misled).process
    wait_until(lambda: process.is_ready, "the drafter", 4 * PATIENCE_S)
    hear_first_draft(misled, random_clip(rng, *random_asked(rng, 1)))
    return process


def random_clip(rng, asked) -> Clip:
    num_events = 2_000
    events = Events.checked(
        rng.integers(0, SENSOR.width, num_events),
        rng.integers(0, SENSOR.height, num_events),
        # Longer than the drafter can look at: it takes the newest part.
        rng.integers(0, 400_000, num_events).cumsum() // num_events,
        rng.integers(0, 2, num_events),
        SENSOR,
    )
    return Clip(Video.from_frames(asked.frames, fps=8), events)


def asked_and_expected(rng, oracle, count):
    for asked in random_asked(rng, count):
        yield asked, random_clip(rng, asked), oracle.answer(asked, MAX_TOKENS)[0]


def assert_answers_are_the_targets(misled, oracle, rng, count=3):
    for asked, clip, expected in asked_and_expected(rng, oracle, count):
        answer = misled.session("front").ask(clip, asked.question, max_tokens=MAX_TOKENS)
        assert list(answer.token_ids) == expected


def drafted_and_accepted(answers) -> tuple[int, int]:
    """Of the tokens that came over the channel, over all answers."""
    verdicts = [
        verdict
        for answer in answers
        for verdict in answer.verdicts
        if verdict.draft.source == "eventgpt"
    ]
    drafted = sum(len(verdict.draft.tokens) for verdict in verdicts)
    return drafted, sum(verdict.num_accepted for verdict in verdicts)


def test_a_strangers_drafts_change_no_token(misled, oracle, rng, process):
    """An untrained EventGPT never foresees an untrained target, and is told so again and again."""
    answers = []
    for asked, clip, expected in asked_and_expected(rng, oracle, 6):
        with drafting(misled, clip, asked.question, MAX_TOKENS) as (name, ear):
            ear.wait_for(1)
            answers.append(ask_target(misled, clip, asked.question, name, MAX_TOKENS))
        assert list(answers[-1].token_ids) == expected
    drafted, accepted = drafted_and_accepted(answers)
    assert drafted > accepted


def test_a_drafter_that_is_wrong_follows_the_target(misled, oracle, rng, process):
    """Told what was said, it drafts on from there."""
    (asked,) = random_asked(rng, 1)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    said = tuple(t for t in expected if t < oracle.model.config.image_token_index)[:5]
    assert said
    clip = random_clip(rng, asked)
    with drafting(misled, clip, asked.question, MAX_TOKENS) as (name, ear):
        assert ear.wait_until(lambda draft: True).start == 0
        outlet = drafter_of(misled)._channel.asks_out()
        wait_until(lambda: send(outlet, messages.Said(name, said)))
        ear.wait_until(lambda draft: draft.start == len(said))
        outlet.close()


def test_a_stopped_drafter_changes_no_token(misled, oracle, rng, process):
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert_answers_are_the_targets(misled, oracle, rng)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert_answers_are_the_targets(misled, oracle, rng, 1)


def test_a_killed_drafter_changes_no_token_and_is_started_again(misled, oracle, rng, process):
    pid = process.pid
    answers = []

    def ask():
        for asked, clip, expected in asked_and_expected(rng, oracle, 3):
            answer = misled.ask(clip, asked.question, max_tokens=MAX_TOKENS)
            answers.append(list(answer.token_ids) == expected)

    asking = threading.Thread(target=ask)
    asking.start()
    os.kill(pid, signal.SIGKILL)
    asking.join(PATIENCE_S)
    assert answers == [True] * 3
    assert_answers_are_the_targets(misled, oracle, rng)
    wait_until(lambda: process.is_ready and process.pid != pid, "another drafter", 4 * PATIENCE_S)
    assert_answers_are_the_targets(misled, oracle, rng, 1)


LIES = {
    "random": lambda rng: tuple(int(t) for t in rng.integers(3, 500, 30)),
    "ten thousand": lambda rng: tuple(int(t) for t in rng.integers(3, 500, 10_000)),
}
NOT_TEXT = {
    "negative": lambda rng: (-1,) * 30,
    "out of the vocabulary": lambda rng: (2**31,) * 30,
    "placeholders": lambda rng: (512, 513, 514) * 10,
}


@pytest.mark.parametrize("name", LIES | NOT_TEXT)
def test_a_liar_on_the_channel_changes_no_token(misled, oracle, rng, name):
    """Messages of every kind, all the while the target answers, up to and past its end."""
    lie = (LIES | NOT_TEXT)[name]
    channel = DraftChannel(drafter_of(misled)._channel.directory)
    done, lied = threading.Event(), threading.Event()

    def spam(ask):
        outlet = channel.drafts_out()
        while not done.is_set():
            for request in (ask, "dead", ""):
                for start in (10**6, -1, 3, 0):  # the last one stands, and is about the first word
                    draft = Draft(lie(rng), "eventgpt", time.monotonic(), start)
                    message = messages.Drafted(request, draft)
                    if send(outlet, message):
                        lied.set()
            with contextlib.suppress(zmq.Again):
                outlet.send(b"\x93noise", zmq.NOBLOCK)
            time.sleep(0.001)  # plays: a liar that leaves the others a turn
        outlet.close()

    answers = []
    for asked, clip, expected in asked_and_expected(rng, oracle, 8):
        done.clear()
        ask = f"lie-{asked.question}"
        lying = threading.Thread(target=spam, args=(ask,))
        lying.start()
        try:
            assert lied.wait(PATIENCE_S)
            answers.append(ask_target(misled, clip, asked.question, ask, MAX_TOKENS))
        finally:
            done.set()
            lying.join()
        assert list(answers[-1].token_ids) == expected
        drafted, accepted = drafted_and_accepted(answers)
        if len(answers) >= 2 and drafted > accepted:
            break  # on a busy machine an answer may be over before the first lie arrives
    if name in NOT_TEXT:
        assert drafted == 0, "the target was asked to verify what no tokenizer can spell"
    else:
        assert drafted > accepted


def test_an_ask_the_drafter_cannot_read_ends_nothing_but_itself(misled, oracle, rng, process):
    outlet = drafter_of(misled)._channel.asks_out()
    pid, words = process.pid, "What? " * 2000  # longer than the model's context
    for ask in (
        messages.Ask("long", words, (5, 72, 96, 3), bytes(5 * 72 * 96 * 3), 8, 0.0),
        messages.Ask("shapeless", "What?", (-5, -72, 96, 3), bytes(5 * 72 * 96 * 3), 8, 0.0),
        messages.Ask("empty", "What?", (0, 0, 0, 0), b"", 8, 0.0),
        messages.Ask("thin", "What?", (5, 1, 1, 3), bytes(5 * 3), 8, 0.0),
        messages.Said("nobody", (1, 2, 3)),
    ):
        wait_until(lambda ask=ask: send(outlet, ask))
    outlet.close(linger=round(PATIENCE_S * 1e3))  # every one of them is delivered
    assert_answers_are_the_targets(misled, oracle, rng, 2)
    (asked,) = random_asked(rng, 1)
    with drafting(misled, random_clip(rng, asked), asked.question, 4) as (_, ear):
        ear.wait_for(1)
    assert process.pid == pid


def test_a_drafter_that_cannot_start_is_told_of_at_once(tiny_drafter):
    lease = ChannelLease.take()
    spec = replace(EventDraftModel(tiny_drafter).spec(lease.channel), vllm={"warp_speed": 1})
    process = EventModelProcess(spec, {})
    with pytest.raises(EngineStartError, match=r"The drafter .* ended"):
        process.wait_ready(PATIENCE_S)
    process.close()
    lease.close()


@pytest.mark.nightly
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is shared, not seated")
def test_a_drafter_beside_the_target_on_cores_lets_it_go_first_once_it_has_loaded(
    tiny_target, tiny_drafter, monkeypatch
):
    monkeypatch.delenv("VLLM_CPU_OMP_THREADS_BIND", raising=False)
    drafter, _ = EventDraftModel(tiny_drafter).placed({})
    lease = ChannelLease.take()
    drafts = DraftSubscriber(lease.channel)
    with contextlib.closing(drafter.start(drafts, abstain=True)) as client:
        process = client.process
        wait_until(
            lambda: (
                process.pid is not None and os.getpriority(os.PRIO_PROCESS, process.pid) == YIELDING
            ),
            "a drafter that yields",
        )
        here = Path("/proc", str(process.pid))
        assert "libtorch" in (here / "maps").read_text()  # who loads it waits for nobody
        assert os.sched_getaffinity(process.pid) == {max(os.sched_getaffinity(0))}
        client.wait_ready()
        threads = [int(each.name) for each in (here / "task").iterdir()]
        assert len(threads) > 1
        assert {os.getpriority(os.PRIO_PROCESS, each) for each in threads} == {YIELDING}
    drafts.close()
    lease.close()


def test_the_drafter_ends_with_the_process_that_started_it(tiny_drafter, tmp_path):
    """However that one goes, and even if it is stopped."""
    program = tmp_path / "parent.py"
    program.write_text(
        "import os, time\n"
        "from headstart_events.beside.event_model import EventDraftModel\n"
        "from headstart_events.beside.process import EventModelProcess\n"
        "from headstart.engine.drafts.channel import ChannelLease\n"
        "if __name__ == '__main__':\n"
        "    channel = ChannelLease.take().channel\n"
        f"    spec = EventDraftModel({str(tiny_drafter)!r}).spec(channel)\n"
        "    process = EventModelProcess(spec, {})\n"
        "    while process.pid is None: time.sleep(0.01)\n"
        "    print(process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    maps = Path(f"/proc/{child}/maps")
    wait_until(lambda: "libtorch" in maps.read_text(), "a start well under way")
    os.kill(child, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    wait_until(lambda: not alive(child), "the child's end")


def alive(pid: int) -> bool:
    """Running; not gone, and not dead and merely not collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
