"""Rate limits: requests and tokens per minute, of a tenant and of all."""

from http import HTTPStatus

import pytest

from headstart_server import metrics
from headstart_server.limits import Limits
from headstart_server.quota import MEMORY_CALLS_A_SECOND, MEMORY_CALLS_AT_ONCE, Bucket, Quota
from headstart_server.refusal import RefusedError


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def quota_of(clock: Clock, **limits: int) -> Quota:
    return Quota(Limits(**limits), clock)


def refused_for_s(quota: Quota, tenant: str) -> int | None:
    refusal = None
    try:
        quota.admit(tenant)
    except RefusedError as error:
        refusal = error
    if refusal is None:
        return None
    assert refusal.status is HTTPStatus.TOO_MANY_REQUESTS
    assert f"in {refusal.retry_after_s} s" in refusal.message
    return refusal.retry_after_s


def test_requests_over_the_rate_are_refused_with_the_time_to_wait(clock):
    quota = quota_of(clock, tenant_requests_per_minute=6)
    assert [refused_for_s(quota, "north") for _ in range(7)] == [None] * 6 + [10]
    assert refused_for_s(quota, "south") is None
    clock.now_s += 9.5
    assert refused_for_s(quota, "north") == 1
    clock.now_s += 0.5
    assert [refused_for_s(quota, "north") for _ in range(2)] == [None, 10]
    clock.now_s += 3600
    assert [refused_for_s(quota, "north") for _ in range(7)] == [None] * 6 + [10]


def test_tokens_are_charged_when_computed_and_refill_over_time(clock):
    quota = quota_of(clock, tenant_tokens_per_minute=60)
    quota.admit("north")
    quota.charge("north", 160)  # more than the bucket holds: they have been computed
    assert refused_for_s(quota, "north") == 101
    assert refused_for_s(quota, "south") is None
    clock.now_s += 100.5
    assert refused_for_s(quota, "north") == 1
    clock.now_s += 0.5
    assert refused_for_s(quota, "north") is None


def test_all_tenants_together_have_a_rate_limit_too(clock):
    quota = quota_of(clock, requests_per_minute=6, tenant_requests_per_minute=5)
    assert [refused_for_s(quota, "north") for _ in range(6)] == [None] * 5 + [12]
    assert [refused_for_s(quota, "south") for _ in range(2)] == [None, 10]
    quota = quota_of(clock, tokens_per_minute=60)
    quota.charge("north", 65)
    assert refused_for_s(quota, "south") == 6


def test_a_bucket_may_hold_less_than_a_minutes_worth():
    bucket = Bucket(60, 0.0, size=2)
    assert bucket.wait_s(2, 0.0) == 0
    bucket.take(2, 0.0)
    assert bucket.wait_s(1, 0.0) == 1
    assert bucket.wait_s(3, 3600.0) == 1, "an hour fills it no further"


def test_a_refused_request_is_not_charged(clock):
    quota = quota_of(clock, requests_per_minute=3, tenant_requests_per_minute=1)
    for _ in range(10):
        refused_for_s(quota, "north")
    assert refused_for_s(quota, "south") is None
    assert refused_for_s(quota, "east") is None


def test_calls_about_memory_wait_for_their_turn_and_nobody_else_does(clock):
    quota = quota_of(clock)
    waits = [quota.memory_wait_s("north") for _ in range(MEMORY_CALLS_AT_ONCE)]
    assert waits == [0] * MEMORY_CALLS_AT_ONCE
    waits = [quota.memory_wait_s("north") for _ in range(100)]
    assert waits == pytest.approx([turn / MEMORY_CALLS_A_SECOND for turn in range(1, 101)])
    assert quota.memory_wait_s("south") == 0
    assert refused_for_s(quota, "north") is None  # its questions are answered
    clock.now_s += 100 / MEMORY_CALLS_A_SECOND
    assert quota.memory_wait_s("north") == pytest.approx(1 / MEMORY_CALLS_A_SECOND)


def test_what_is_brought_is_charged_as_tokens_and_counted_as_no_answer(clock):
    quota = quota_of(clock, tenant_tokens_per_minute=60)
    before = metrics.TenantMetrics("brings").text()
    quota.charge_memory("brings", 65)
    assert refused_for_s(quota, "brings") == 6
    assert metrics.TenantMetrics("brings").text() == before


def test_the_defaults_allow_64_cameras_that_ask_every_second(clock):
    quota = quota_of(clock)
    for _ in range(10 * 60):
        for _ in range(64):
            quota.admit("fleet")
            quota.charge("fleet", 2400)
        clock.now_s += 1.0
