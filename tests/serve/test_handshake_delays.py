"""How long a tenant waits whose sockets were refused, by a clock of the test's own."""

import pytest

from headstart_server.live.handshake_delays import EACH_S, LONGEST_S, NUM_FREE, HandshakeDelays
from tests.serve.test_quota import Clock


def refused(times: int, clock: Clock) -> HandshakeDelays:
    delays = HandshakeDelays(clock)
    for _ in range(times):
        delays.charge("north")
    return delays


def test_some_refusals_are_free_and_no_other_tenant_waits():
    clock = Clock()
    assert refused(NUM_FREE - 1, clock).wait_s("north") == 0
    delays = refused(NUM_FREE, clock)
    assert delays.wait_s("north") == pytest.approx(EACH_S)
    assert delays.wait_s("south") == 0
    clock.now_s += EACH_S
    assert delays.wait_s("north") == 0
    delays.charge("north")
    assert delays.wait_s("north") == pytest.approx(EACH_S)


def test_nobody_owes_more_than_the_longest_wait():
    clock = Clock()
    delays = refused(10_000, clock)
    assert delays.wait_s("north") == LONGEST_S
    clock.now_s += LONGEST_S + EACH_S
    assert delays.wait_s("north") == 0


def test_tenants_are_forgotten_once_all_is_free_again():
    clock = Clock()
    delays = HandshakeDelays(clock)
    for number in range(1000):
        delays.charge(f"tenant {number}")
        clock.now_s += EACH_S
    assert len(delays) <= 2
