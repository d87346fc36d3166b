"""How long a tenant waits whose sockets were refused, by a clock of the test's own."""

import pytest

from headstart_server.delays import Delays
from headstart_server.live.route import EACH_S, LONGEST_S, NUM_FREE
from tests.serve.test_quota import Clock


def refused(times: int, clock: Clock) -> Delays:
    backoff = Delays(NUM_FREE, EACH_S, LONGEST_S, clock)
    for _ in range(times):
        backoff.charge("north")
    return backoff


def test_some_refusals_are_free_and_no_other_tenant_waits():
    clock = Clock()
    assert refused(NUM_FREE - 1, clock).wait_s("north") == 0
    backoff = refused(NUM_FREE, clock)
    assert backoff.wait_s("north") == pytest.approx(EACH_S)
    assert backoff.wait_s("south") == 0
    clock.now_s += EACH_S
    assert backoff.wait_s("north") == 0
    backoff.charge("north")
    assert backoff.wait_s("north") == pytest.approx(EACH_S)


def test_nobody_owes_more_than_the_longest_wait():
    clock = Clock()
    backoff = refused(10_000, clock)
    assert backoff.wait_s("north") == LONGEST_S
    clock.now_s += LONGEST_S + EACH_S
    assert backoff.wait_s("north") == 0


def test_tenants_are_forgotten_once_all_is_free_again():
    clock = Clock()
    backoff = refused(0, clock)
    for number in range(1000):
        backoff.charge(f"tenant {number}")
        clock.now_s += EACH_S
    assert len(backoff) <= 2
