"""Drafts that surely come in time: heard first, then the target is asked."""

import contextlib
import threading
import time
import uuid

from headstart.engine import target as target_module
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.engine.request_tags import RequestTags

PATIENCE_S = 120.0


class Ear:
    """Hears a request's drafts, and can be waited for."""

    def __init__(self):
        self.newest = None
        self._changed = threading.Condition()

    def __call__(self, drafted):
        with self._changed:
            self.newest = drafted.draft
            self._changed.notify_all()

    def wait_until(self, is_enough):
        """The first draft of which ``is_enough`` is true."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: self.newest is not None and is_enough(self.newest), PATIENCE_S
            ), f"heard last: {self.newest}"
        return self.newest

    def wait_for(self, num_tokens):
        """A draft that reaches so far into the answer."""
        return self.wait_until(lambda draft: draft.stop >= num_tokens)


def drafter_of(headstart):
    """The front end's end of the event model beside its target."""
    return headstart.target.front_end.draft_model


def record_of(name):
    """Of a request called ``name``."""
    now_s = time.monotonic()
    return RequestRecord(name, now_s, now_s)


@contextlib.contextmanager
def drafting(headstart, clip, words, max_tokens):
    """The drafter at work: the request's name, and an ear for its drafts."""
    front_end, name, ear = headstart.target.front_end, uuid.uuid4().hex, Ear()
    question = Question(words, clip, max_tokens)
    with (
        front_end.drafts.subscribe(name, ear),
        front_end.draft_model.drafting(question, record_of(name)),
    ):
        yield name, ear


def hear_first_draft(headstart, clip):
    """One request, to a drafter that has just started, is drafted and not lost."""
    with drafting(headstart, clip, "Is anybody there?", 2) as (_, ear):
        ear.wait_until(lambda draft: True)


def ask_target(headstart, clip, words, name, max_tokens):
    """The target's answer, with the drafts of the request called ``name``, whoever sends them."""

    async def answer():
        target, record = headstart.target, record_of(uuid.uuid4().hex)
        with target.front_end.engine.recording(record):
            question, tags = Question(words, clip, max_tokens), RequestTags(name=name)
            outputs = await target._generate(question, tags, record, streaming=False)
            (output,) = [output async for output in outputs]
        said = output.outputs[0]
        return target_module._answer(said.text, said, record, None)

    return headstart.loop.submit(answer()).result(PATIENCE_S)
