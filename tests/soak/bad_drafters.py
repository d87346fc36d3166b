"""Drafters at their worst: killed while answers are under way, and lying on the draft channel."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator

from headstart import Headstart
from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import DraftChannel, send
from headstart.speculation.draft import Draft

FIRST_ID = 3  # of ordinary text
NUM_LIED = 24
PAUSE_S = 0.002


def kill_drafter(headstart: Headstart) -> bool:
    """SIGKILL, if the drafter is up; it is started again after a while."""
    client = headstart.target.front_end.drafter
    if client is None or client.process is None or not client.is_up or client.process.pid is None:
        return False
    os.kill(client.process.pid, signal.SIGKILL)
    return True


class Lies:
    """How many were sent."""

    num_sent = 0


@contextlib.contextmanager
def lying(headstart: Headstart, dice: random.Random) -> Iterator[Lies]:
    """Send random tokens as drafts of every answer that is under way, all the while."""
    front_end, lies, done = headstart.target.front_end, Lies(), threading.Event()
    assert front_end.drafter is not None, "an engine without drafts has no channel to lie on"
    channel = DraftChannel(front_end.drafter._channel.directory)
    last_id = headstart.target.view.num_text_ids - 1

    def lie() -> None:
        outlet = channel.drafts_out()
        while not done.wait(PAUSE_S):
            for request in list(front_end.engine._records):
                tokens = tuple(dice.randint(FIRST_ID, last_id) for _ in range(NUM_LIED))
                draft = Draft(tokens, messages.SOURCE, time.monotonic(), dice.randint(0, 8))
                lies.num_sent += send(outlet, messages.Drafted(request, draft))
        outlet.close()

    liar = threading.Thread(target=lie)
    liar.start()
    try:
        yield lies
    finally:
        done.set()
        liar.join()
