"""The draft channel: an end that has nothing to read costs the engine nothing."""

import sys
import threading

import pytest

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import DraftChannel, receive, send
from rig.waiting import wait_until

LOOKS = 2000


@pytest.fixture
def channel(tmp_path):
    return DraftChannel(str(tmp_path))


@pytest.fixture
def no_turns():
    """A thread keeps its turn until it waits for something."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    yield
    sys.setswitchinterval(before)


def test_a_message_is_read_once(channel):
    with channel.previews_in() as reader, channel.previews_out() as writer:
        wait_until(lambda: send(writer, messages.Ready(7)), "the other end")
        assert messages.read_from_draft_model(receive(reader, timeout_s=30.0)) == messages.Ready(7)
        assert receive(reader) is None


def test_who_finds_nothing_does_not_let_other_threads_run(channel, no_turns):
    """The scheduler looks before each step, while another thread sends out the last one's words."""
    begun, ran = threading.Event(), []

    def other():
        begun.wait()
        ran.append(True)

    with channel.drafts_in() as reader:
        thread = threading.Thread(target=other)
        thread.start()
        begun.set()
        for _ in range(LOOKS):
            assert receive(reader) is None
        assert not ran
    thread.join()
