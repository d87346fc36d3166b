"""A drafter that dies, hangs or lies: the same tokens, and the answer arrives."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import zmq
from tests.engine.test_drafter import ARGUMENTS, PATIENCE_S
from tests.models.oracle import Oracle, random_asked

from headstart import Clip, EventDrafter, Headstart, Video
from headstart.engine import wire
from headstart.engine.asking import AskDetails
from headstart.engine.drafter_process import DrafterProcess
from headstart.engine.drafter_spec import DrafterSpec
from headstart.engine.line import Line, OwnedLine, send
from headstart.errors import EngineStartError
from headstart.lab.tiny import TinyEventGpt
from headstart.media.events import Events, SensorSize

pytestmark = pytest.mark.engine

MAX_TOKENS = 40
SENSOR = SensorSize(96, 72)


@pytest.fixture(scope="module")
def headstart(tiny_target, tmp_path_factory):
    drafter = tmp_path_factory.mktemp("eventgpt")
    TinyEventGpt().save(drafter)
    with Headstart(
        tiny_target,
        drafter=EventDrafter(drafter, ARGUMENTS),
        max_draft_tokens=16,
        vllm=ARGUMENTS,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def oracle(tiny_target):
    return Oracle(tiny_target)


@pytest.fixture
def process(headstart):
    """The drafter's process, up; whatever a test does to it, the next finds one up again."""
    process = headstart._pair.sidecar.companion.process
    deadline = time.monotonic() + 4 * PATIENCE_S
    while not process.is_ready:
        assert time.monotonic() < deadline
        time.sleep(0.1)
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


def assert_answers_are_the_targets(headstart, oracle, rng, count=3):
    for asked, clip, expected in asked_and_expected(rng, oracle, count):
        answer = headstart.session("front").ask(clip, asked.question, max_tokens=MAX_TOKENS)
        assert list(answer.token_ids) == expected


def test_a_strangers_drafts_change_no_token(headstart, oracle, rng, process):
    """An untrained EventGPT never foresees an untrained target, and is told so again and again."""
    assert_answers_are_the_targets(headstart, oracle, rng, 6)


def test_a_drafter_that_is_wrong_follows_the_target(headstart, oracle, rng, process):
    """Told what was said, it drafts on from there."""
    companion = headstart._pair.sidecar.companion
    line = companion._line
    (asked,) = random_asked(rng, 1)
    clip = random_clip(rng, asked)
    expected, _ = oracle.answer(asked, MAX_TOKENS)
    said = tuple(t for t in expected if t < oracle.model.config.image_token_index)[:5]
    heard, changed = [], threading.Condition()

    def on_draft(drafted):
        with changed:
            heard.append(drafted)
            changed.notify_all()

    with companion.drafting(clip, asked.question, MAX_TOKENS, on_draft) as ask:
        with changed:
            assert changed.wait_for(lambda: heard, PATIENCE_S)
        assert heard[0].start == 0
        outlet = line.asks_out()
        deadline = time.monotonic() + PATIENCE_S
        while not send(outlet, wire.Said(ask, said)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with changed:
            assert changed.wait_for(lambda: heard[-1].start == len(said), PATIENCE_S)
        outlet.close()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is shared, not seated")
def test_a_drafter_beside_the_target_on_cores_lets_it_go_first(process):
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_stopped_drafter_changes_no_token(headstart, oracle, rng, process):
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert_answers_are_the_targets(headstart, oracle, rng)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert_answers_are_the_targets(headstart, oracle, rng, 1)


def test_a_killed_drafter_changes_no_token_and_is_started_again(headstart, oracle, rng, process):
    pid = process.pid
    answers = []

    def ask():
        for asked, clip, expected in asked_and_expected(rng, oracle, 3):
            answer = headstart.ask(clip, asked.question, max_tokens=MAX_TOKENS)
            answers.append(list(answer.token_ids) == expected)

    asking = threading.Thread(target=ask)
    asking.start()
    os.kill(pid, signal.SIGKILL)
    asking.join(PATIENCE_S)
    assert answers == [True] * 3
    assert_answers_are_the_targets(headstart, oracle, rng)
    deadline = time.monotonic() + 4 * PATIENCE_S
    while not (process.is_ready and process.pid != pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert_answers_are_the_targets(headstart, oracle, rng, 1)


LIES = {
    "random": lambda rng: tuple(int(t) for t in rng.integers(0, 512, 30)),
    "negative": lambda rng: (-1,) * 30,
    "out of the vocabulary": lambda rng: (2**31,) * 30,
    "placeholders": lambda rng: (512, 513, 514) * 10,
    "ten thousand": lambda rng: tuple(int(t) for t in rng.integers(0, 500, 10_000)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_liar_on_the_line_changes_no_token(headstart, oracle, rng, lie):
    """Messages of every kind, all the while the target answers, up to and past its end."""
    pair = headstart._pair
    line = Line(pair.sidecar.companion._line.directory)
    done = threading.Event()
    num_sent = 0

    def spam(ask):
        nonlocal num_sent
        outlet = line.drafts_out()
        while not done.is_set():
            for name in (ask, "dead", ""):
                for start in (0, 3, -1, 10**6):
                    message = wire.Drafted(name, "eventgpt", start, lie(rng), time.monotonic())
                    num_sent += send(outlet, message)
            with contextlib.suppress(zmq.Again):
                outlet.send(b"\x93noise", zmq.NOBLOCK)
            time.sleep(0.001)
        outlet.close()

    async def answer(clip, asked, ask):
        pieces = pair.target.ask(
            clip,
            asked.question,
            max_tokens=MAX_TOKENS,
            streaming=False,
            details=AskDetails(ask=ask),
        )
        return [piece async for piece in pieces][-1]

    for asked, clip, expected in asked_and_expected(rng, oracle, 2):
        done.clear()
        lying = threading.Thread(target=spam, args=(f"lie-{asked.question}",))
        lying.start()
        try:
            asking = answer(clip, asked, f"lie-{asked.question}")
            said = headstart._submit(asking).result(PATIENCE_S)
        finally:
            done.set()
            lying.join()
        assert list(said.token_ids) == expected
    assert num_sent


def test_an_ask_the_drafter_cannot_read_ends_nothing_but_itself(headstart, oracle, rng, process):
    outlet = headstart._pair.sidecar.companion._line.asks_out()
    pid, words = process.pid, "What? " * 2000  # longer than the model's context
    deadline = time.monotonic() + PATIENCE_S
    for ask in (
        wire.Ask("long", words, (5, 72, 96, 3), bytes(5 * 72 * 96 * 3), 8, 0.0),
        wire.Ask("shapeless", "What?", (-5, -72, 96, 3), bytes(5 * 72 * 96 * 3), 8, 0.0),
        wire.Ask("empty", "What?", (0, 0, 0, 0), b"", 8, 0.0),
        wire.Ask("thin", "What?", (5, 1, 1, 3), bytes(5 * 3), 8, 0.0),
        wire.Said("nobody", (1, 2, 3)),
    ):
        while not send(outlet, ask):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    outlet.close(linger=round(PATIENCE_S * 1e3))  # every one of them is delivered
    assert_answers_are_the_targets(headstart, oracle, rng, 2)
    (asked,) = random_asked(rng, 1)
    heard = threading.Event()
    with headstart._pair.sidecar.drafting(
        random_clip(rng, asked), asked.question, 4, lambda drafted: heard.set()
    ):
        assert heard.wait(PATIENCE_S)
    assert process.pid == pid


def test_a_drafter_that_cannot_start_is_told_of_at_once(tmp_path):
    TinyEventGpt().save(tmp_path / "drafter")
    owned = OwnedLine.take()
    spec = DrafterSpec(str(tmp_path / "drafter"), {"warp_speed": 1}, 1, owned.line)
    process = DrafterProcess(spec, {})
    with pytest.raises(EngineStartError, match=r"The drafter .* ended"):
        process.wait_ready(PATIENCE_S)
    process.close()
    owned.close()


def test_the_drafter_ends_with_the_process_that_started_it(tmp_path):
    """However that one goes, and even if it is stopped."""
    TinyEventGpt().save(tmp_path / "drafter")
    program = tmp_path / "parent.py"
    program.write_text(
        "import os, time\n"
        "from headstart.engine.drafter_process import DrafterProcess\n"
        "from headstart.engine.drafter_spec import DrafterSpec\n"
        "from headstart.engine.line import OwnedLine\n"
        "if __name__ == '__main__':\n"
        f"    spec = DrafterSpec({str(tmp_path / 'drafter')!r}, {{}}, 1, OwnedLine.take().line)\n"
        "    process = DrafterProcess(spec, {})\n"
        "    while process.pid is None: time.sleep(0.01)\n"
        "    print(process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    deadline = time.monotonic() + PATIENCE_S
    while "libtorch" not in Path(f"/proc/{child}/maps").read_text():  # well under way
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(child, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Running; not gone, and not dead and merely not collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
