"""Bounds on the requests in flight and on the bytes of their bodies."""

import pytest

from headstart_server.admission import Admission
from headstart_server.refusal import RefusedError
from headstart_server.settings import Limits


def test_body_bytes_are_bounded_for_a_tenant_and_for_all():
    admission = Admission(Limits(max_bodies_bytes=100, max_tenant_bodies_bytes=60))
    with admission.admit("north") as first, admission.admit("north") as second:
        first.set_body_bytes(30)
        first.set_body_bytes(40)  # in total, not in addition
        second.set_body_bytes(20)
        with pytest.raises(RefusedError, match="your requests"):
            second.set_body_bytes(21)
        with admission.admit("south") as third:
            third.set_body_bytes(40)
            with pytest.raises(RefusedError, match="the requests in flight"):
                third.set_body_bytes(41)
        with admission.admit("south") as third:
            third.set_body_bytes(40)
    with admission.admit("north") as first:
        first.set_body_bytes(30)
        with admission.admit("north") as second:
            second.set_body_bytes(30)
        first.set_body_bytes(60)  # the bytes of the request that ended are free again


def test_requests_in_flight_are_bounded_for_a_tenant_and_for_all():
    admission = Admission(Limits(max_requests=3, max_tenant_requests=2))
    with admission.admit("north"), admission.admit("north"):
        assert (
            admission.num_in_flight,
            admission.num_in_flight_of("north"),
            admission.num_in_flight_of("south"),
        ) == (2, 2, 0)
        with pytest.raises(RefusedError, match="your requests"), admission.admit("north"):
            pass
        with (
            admission.admit("south"),
            pytest.raises(RefusedError, match="too many requests"),
            admission.admit("east"),
        ):
            pass
    assert admission.num_in_flight == 0
