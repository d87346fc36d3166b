"""Drafts that surely come in time: heard first, then the target is asked."""

import threading
import time

from headstart.engine.asking import AskDetails

PATIENCE_S = 120.0


class Ear:
    """Hears an ask's drafts, and can be waited for."""

    def __init__(self):
        self.newest = None
        self._changed = threading.Condition()

    def __call__(self, drafted):
        with self._changed:
            self.newest = drafted
            self._changed.notify_all()

    def hears(self, is_enough, patience_s):
        """Whether a draft of which ``is_enough`` is true comes in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self.newest is not None and is_enough(self.newest), patience_s
            )

    def wait_until(self, is_enough):
        """The first draft of which ``is_enough`` is true."""
        assert self.hears(is_enough, PATIENCE_S), f"heard last: {self.newest}"
        return self.newest

    def wait_for(self, num_tokens):
        """A draft that reaches so far into the answer."""
        return self.wait_until(lambda draft: draft.start + len(draft.tokens) >= num_tokens)


def wait_until_asks_arrive(headstart, clip):
    """Return when the drafter hears what it is asked.

    An ask finds nobody there until the front end has connected to a drafter that has just
    started, up to a second later, and is then dropped.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        ear = Ear()
        with headstart._pair.sidecar.companion.drafting(clip, "Is anybody there?", 2, ear):
            if ear.hears(lambda draft: True, 2.0):
                return
        assert time.monotonic() < deadline


def ask_target(headstart, clip, question, ask, max_tokens):
    """The target's answer, with the drafts of the ask named ``ask``, whoever sends them."""

    async def answer():
        pieces = headstart._pair.target.ask(
            clip,
            question,
            max_tokens=max_tokens,
            streaming=False,
            details=AskDetails(ask=ask),
        )
        return [piece async for piece in pieces][-1]

    return headstart._submit(answer()).result(PATIENCE_S)
