"""Bounds on the requests in flight and on the bytes of their bodies."""

import pytest

from headstart_server.admission import RequestsInFlight
from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError


def test_body_bytes_are_bounded_for_a_tenant_and_for_all():
    requests = RequestsInFlight(Limits(max_bodies_bytes=100, max_tenant_bodies_bytes=60))
    with requests.admit("north") as first, requests.admit("north") as second:
        first.set_body_bytes(30)
        first.set_body_bytes(40)  # in total, not in addition
        second.set_body_bytes(20)
        with pytest.raises(RefusedError, match="your requests"):
            second.set_body_bytes(21)
        with requests.admit("south") as third:
            third.set_body_bytes(40)
            with pytest.raises(RefusedError, match="the requests in flight"):
                third.set_body_bytes(41)
        with requests.admit("south") as third:
            third.set_body_bytes(40)
    with requests.admit("north") as first:
        first.set_body_bytes(30)
        with requests.admit("north") as second:
            second.set_body_bytes(30)
        first.set_body_bytes(60)  # the bytes of the request that ended are free again


def test_requests_in_flight_are_bounded_for_a_tenant_and_for_all():
    requests = RequestsInFlight(Limits(max_requests=3, max_tenant_requests=2))
    with requests.admit("north"), requests.admit("north"):
        assert (
            requests.num,
            requests.num_of("north"),
            requests.num_of("south"),
        ) == (2, 2, 0)
        with pytest.raises(RefusedError, match="your requests"), requests.admit("north"):
            pass
        with (
            requests.admit("south"),
            pytest.raises(RefusedError, match="too many requests"),
            requests.admit("east"),
        ):
            pass
    assert requests.num == 0
