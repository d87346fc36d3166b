"""Drafters at their worst: killed while answers are under way, and lying on the draft channel."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator

from headstart import Headstart
from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import send
from headstart.speculation.draft import Draft
from headstart_events.beside.client import EventModelClient
from headstart_events.beside.worth import SOURCE

FIRST_ID = 3  # of ordinary text
NUM_LIED = 24
PAUSE_S = 0.002


def kill_drafter(headstart: Headstart) -> bool:
    """SIGKILL, if the drafter is up; it is started again after a while."""
    model = headstart.target.front_end.draft_model
    if not isinstance(model, EventModelClient) or not model.is_up or model.process.pid is None:
        return False
    os.kill(model.process.pid, signal.SIGKILL)
    return True


class Lies:
    """How many were sent."""

    num_sent = 0


@contextlib.contextmanager
def lying(headstart: Headstart, dice: random.Random) -> Iterator[Lies]:
    """Send random tokens as drafts of every answer that is under way, all the while."""
    front_end, lies, done = headstart.target.front_end, Lies(), threading.Event()
    assert front_end.drafts is not None, "an engine without drafts has no channel to lie on"
    channel = front_end.drafts.channel
    last_id = headstart.target.view.num_text_ids - 1

    def lie() -> None:
        outlet = channel.drafts_out()
        while not done.wait(PAUSE_S):
            for request in list(front_end.engine._records):
                tokens = tuple(dice.randint(FIRST_ID, last_id) for _ in range(NUM_LIED))
                draft = Draft(tokens, SOURCE, time.monotonic(), dice.randint(0, 8))
                lies.num_sent += send(outlet, messages.Drafted(request, draft))
        outlet.close()

    liar = threading.Thread(target=lie)
    liar.start()
    try:
        yield lies
    finally:
        done.set()
        liar.join()
