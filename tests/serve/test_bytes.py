"""A slice of `tests.soak.serve_bytes`: each attack beside a tenant who asks; counted, not timed."""

import random

import psutil
import pytest

from rig.leftovers import Footprint, leftovers
from rig.servers import MODEL
from tests.soak.byte_attacks import ATTACKS, WORKING, Attacker, attack
from tests.soak.serve_bytes import loop_s

pytestmark = pytest.mark.engine

NUM_QUESTIONS = 2
AT_ONCE = 2
"""Of an attack's connections; the hour has more."""
MAX_LOOP_S = 1.0
"""Processor time of the server's event loop from a question that needs no engine to its answer. An
attack that worked took many seconds."""
MOST_BYTES = 100_000
"""On one connection: what the server has not read yet when it is left is read at its pace."""
KEY = "key-south"


@pytest.fixture(scope="module")
def before(server) -> Footprint:
    return Footprint.of(server)


@pytest.mark.parametrize("name", [*ATTACKS, *WORKING])
def test_another_tenant_is_answered_beside(server, north, before, name):
    attacker = Attacker("127.0.0.1", server.port, KEY, random.Random(0), most_bytes=MOST_BYTES)
    threads = attack(attacker, name, AT_ONCE)
    try:
        for _ in range(NUM_QUESTIONS):
            began_s = loop_s(server)
            assert north.get("/v1/models").status_code == 200
            assert loop_s(server) - began_s < MAX_LOOP_S
            short = {"model": MODEL, "prompt": "a", "max_tokens": 4}
            assert north.post("/v1/completions", json=short).status_code == 200
    finally:
        attacker.stop.set()
        for thread in threads:
            thread.join(30)
        attacker.leave()
    assert attacker.done["bytes"] or attacker.done["connections"]


def test_nothing_is_left_after_them(server, operator, before):
    server.wait_until(lambda: not operator.get("/ready").json()["in_flight"], "none in flight")
    assert list(leftovers(server, "key-operator", before)) == []
    connections = psutil.Process(server.process.pid).net_connections("tcp")
    assert sum(one.status == "ESTABLISHED" for one in connections) < 100
