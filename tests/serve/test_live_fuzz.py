"""A few hundred odd messages and a few abusers on a server that others use meanwhile."""

import contextlib

import pytest

from rig.leftovers import Footprint, leftovers
from rig.live_camera import NUM_SLOTS, jpegs
from rig.servers import metric
from tests.soak.live_abuser import unread_bytes
from tests.soak.live_beside_abusers import CAMERAS, abuser
from tests.soak.live_fuzz import Neighbour, fuzz

pytestmark = pytest.mark.engine
NUM_MESSAGES = 300
MUCH = 100_000
"""Bytes: more than a client has not read that is only slow."""


@pytest.fixture
def room(server, operator) -> None:
    """Cameras that another test left behind are gone."""
    server.wait_until(lambda: metric(operator, CAMERAS) == 0, "room")


def test_hundreds_of_odd_messages_harm_nobody_and_leave_nothing(server, room):
    neighbour, before = Neighbour(server, "key-south"), Footprint.of(server)
    with neighbour.watching():
        tally = fuzz(server, ("key-north", "key-south"), NUM_MESSAGES, seed=1)
    assert list(tally.found.values()) == []
    assert neighbour.wrong == []
    assert neighbour.num_answers > 0
    assert list(leftovers(server, "key-operator", before)) == []
    # It was not all refused at once: cameras began, were answered, and were told what is wrong.
    assert tally.num_sent >= NUM_MESSAGES
    for said in ("started", "answer", "error bad_request"):
        assert tally.said[said] > 0, tally.said


def test_a_neighbour_of_abusers_is_answered_rightly(server, operator, room):
    neighbour, before = Neighbour(server, "key-south"), Footprint.of(server)
    pictures = tuple(jpegs(NUM_SLOTS, seed=5))
    with contextlib.ExitStack() as block:
        for number, name in enumerate(("frozen", "too fast", "killed"), 1):
            block.enter_context(abuser(name, server, "key-north", pictures, window_s=0.8))
            server.wait_until(lambda n=number: metric(operator, CAMERAS) >= n, f"{name} began")
        server.wait_until(lambda: unread_bytes(server.port) > MUCH, "one that does not read")
        block.enter_context(neighbour.watching())
        server.wait_until(lambda: neighbour.num_answers >= 8, "answers beside the abusers")
    assert neighbour.wrong == []
    assert neighbour.num_answers > 0
    assert list(leftovers(server, "key-operator", before)) == []
