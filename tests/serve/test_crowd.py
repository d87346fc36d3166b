"""Places among the requests under way, and the bytes of their bodies."""

import pytest

from headstart.serve.crowd import Crowd
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits


def test_bodies_under_way_are_bounded_for_a_tenant_and_for_all():
    crowd = Crowd(Limits(max_bodies_bytes=100, max_tenant_bodies_bytes=60))
    with crowd.joined("north") as first, crowd.joined("north") as second:
        first.hold(30)
        first.hold(40)  # altogether, not more
        second.hold(20)
        with pytest.raises(RefusedError, match="your requests"):
            second.hold(21)
        with crowd.joined("south") as third:
            third.hold(40)
            with pytest.raises(RefusedError, match="the requests under way"):
                third.hold(41)
        with crowd.joined("south") as third:
            third.hold(40)
    with crowd.joined("north") as first:
        first.hold(30)
        with crowd.joined("north") as second:
            second.hold(30)
        first.hold(60)  # the other's are free again


def test_places_are_bounded_for_a_tenant_and_for_all():
    crowd = Crowd(Limits(max_requests=3, max_tenant_requests=2))
    with crowd.joined("north"), crowd.joined("north"):
        assert (crowd.size, crowd.size_of("north"), crowd.size_of("south")) == (2, 2, 0)
        with pytest.raises(RefusedError, match="your requests"), crowd.joined("north"):
            pass
        with (
            crowd.joined("south"),
            pytest.raises(RefusedError, match="too many requests"),
            crowd.joined("east"),
        ):
            pass
    assert crowd.size == 0
