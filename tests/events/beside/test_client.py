"""When an event model is asked, and what is learnt of what it drafted."""

import pytest

pytest.importorskip("vllm")
from headstart import Clip, Video
from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import ChannelLease
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.engine.question import Question
from headstart.engine.request_record import Report
from headstart.speculation.draft import Draft, Verdict
from headstart.speculation.drafter import StreamKey
from headstart_events.beside import client as client_module
from headstart_events.beside.event_model import EventDraftModel
from headstart_events.beside.worth import PROBE_ANSWERS
from rig.waiting import wait_until
from tests.events.beside.drafts import record_of
from tests.models.oracle import random_clip

STREAM = StreamKey("", "front")
WRONG = (Verdict(Draft(tuple(range(100, 112)), "eventgpt", 0.1), 0),)
END = messages.Leave("end")


class Process:
    """One that is up, and does nothing."""

    pid, is_ready = 1, True

    def __init__(self, spec, environment):
        pass

    def ready(self, pid):
        pass

    def close(self):
        pass


@pytest.fixture
def asking(tiny_target, monkeypatch):
    """Begins a client; what that returns asks a question, and says if it is told."""
    sent = []
    monkeypatch.setattr(client_module, "EventModelProcess", Process)
    monkeypatch.setattr(client_module, "send", lambda socket, message: sent.append(message))
    lease = ChannelLease.take()
    drafts, clients = DraftSubscriber(lease.channel), []

    def begin(*, abstain):
        client = EventDraftModel(tiny_target).start(drafts, abstain=abstain)
        clients.append(client)

        def is_heard(question, verdicts=()):
            sent.clear()
            record = record_of("one")
            with client.drafting(question, record):
                record.stream, record.report = question.stream, Report((), verdicts)
            client._put(END)
            wait_until(lambda: END in sent)
            return messages.Leave("one") in sent

        return is_heard

    yield begin
    for client in clients:
        client.close()
    drafts.close()
    lease.close()


@pytest.fixture
def clip(rng):
    return Clip(Video.from_frames(random_clip(rng), fps=8))


def test_it_is_asked_about_clips_in_prose_only(asking, clip):
    is_heard = asking(abstain=True)
    assert is_heard(Question("What?", clip, 4))
    assert not is_heard(Question("What?", None, 4))
    assert not is_heard(Question("What?", clip, 4, is_free=False))


def test_a_stream_where_it_is_wrong_asks_it_now_and_then(asking, clip):
    is_heard, question = asking(abstain=True), Question("What?", clip, 4, STREAM)
    for _ in range(20):
        is_heard(question, WRONG)
    assert sum(is_heard(question, WRONG) for _ in range(2 * PROBE_ANSWERS)) == 2


def test_previews_and_questions_of_no_stream_are_not_counted_against_it(asking, clip):
    is_heard = asking(abstain=True)
    shown = Question("What?", clip, 4, STREAM, previews=True)
    for question in (shown, Question("What?", clip, 4)):
        assert all(is_heard(question, WRONG) for _ in range(20))
    assert is_heard(Question("What?", clip, 4, STREAM))


def test_where_nothing_abstains_it_is_always_asked(asking, clip):
    is_heard, question = asking(abstain=False), Question("What?", clip, 4, STREAM)
    assert all(is_heard(question, WRONG) for _ in range(20))
