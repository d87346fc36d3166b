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
    """The front end's end of the draft channel."""
    return headstart.target.front_end.drafter


@contextlib.contextmanager
def drafting(headstart, clip, words, max_tokens):
    """The drafter at work: the request's name, and an ear for its drafts."""
    drafter, name, ear = drafter_of(headstart), uuid.uuid4().hex, Ear()
    with drafter.hearing(name, ear), drafter.drafting(name, Question(words, clip, max_tokens)):
        yield name, ear


def hear_first_draft(headstart, clip):
    """One request, to a drafter that has just started, is drafted and not lost."""
    with drafting(headstart, clip, "Is anybody there?", 2) as (_, ear):
        ear.wait_until(lambda draft: True)


def ask_target(headstart, clip, words, name, max_tokens):
    """The target's answer, with the drafts of the request called ``name``, whoever sends them."""

    async def answer():
        target, now_s = headstart.target, time.monotonic()
        record = RequestRecord(uuid.uuid4().hex, now_s, now_s)
        with target.front_end.engine.recording(record):
            question, tags = Question(words, clip, max_tokens), RequestTags(name=name)
            outputs = await target._generate(question, tags, record, streaming=False)
            (output,) = [output async for output in outputs]
        said = output.outputs[0]
        return target_module._answer(said.text, said, record, None)

    return headstart.loop.submit(answer()).result(PATIENCE_S)
