"""The port of a draft model: how one is found by name, and when one at work is asked."""

import asyncio
import contextlib
import time

import pytest

from headstart.engine import draft_model as port
from headstart.engine.draft_model import draft_model
from headstart.errors import DraftingError


def test_without_a_package_that_brings_one_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(port, "ENTRY_POINTS", "headstart.no_such_group")
    with pytest.raises(DraftingError, match=r"headstart\[events\]"):
        draft_model("an-eventgpt", {})


class Beside:
    """Whatever has these members is a draft model at work."""

    is_up = True

    def __init__(self):
        self.asked, self.reported = [], []

    def wait_ready(self):
        pass

    @contextlib.contextmanager
    def drafting(self, question, record):
        self.asked.append(question.words)
        yield
        self.reported.append(record.finish_reason)

    def close(self):
        self.asked.append("closed")


class Engine:
    """Nothing of a front end's engine is asked before the request is sent."""

    def recording(self, record):
        return contextlib.nullcontext()


def test_one_of_somebody_elses_is_asked_what_is_drafted_for_and_told_the_end():
    pytest.importorskip("vllm")
    from headstart.engine.drafts.channel import ChannelLease
    from headstart.engine.drafts.subscriber import DraftSubscriber
    from headstart.engine.front_end import FrontEnd
    from headstart.engine.question import Question
    from headstart.engine.request_record import RequestRecord

    lease, model = ChannelLease.take(), Beside()
    front_end = FrontEnd(Engine(), DraftSubscriber(lease.channel), model)

    async def ask(words, **options):
        record = RequestRecord(words, time.monotonic(), time.monotonic())
        async with front_end.open_request(Question(words, **options), record):
            record.finish_reason = "stop"

    asyncio.run(ask("What?"))
    asyncio.run(ask("What now?", is_drafted=False))
    assert (model.asked, model.reported) == (["What?"], ["stop"])
    front_end.close()
    assert model.asked[-1] == "closed"
    lease.close()
