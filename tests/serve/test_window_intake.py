"""Where windows may begin, by a clock of the test's own."""

from types import SimpleNamespace

import pytest

from headstart.live.windows import Windows
from headstart_server.admission import Admission
from headstart_server.limits import Limits
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.window_intake import MAX_AT_ONCE, WindowIntake
from headstart_server.media.loader import MediaBudget
from headstart_server.quota import Quota
from headstart_server.settings import Settings
from tests.serve.test_quota import Clock

STEP_S = 0.5
WINDOWS = Windows(2.0, STEP_S)


def began(
    clock: Clock, speed: float, num_windows: int, **limits: int
) -> tuple[list[int], list[str]]:
    """Which windows begin of pictures whose times run so fast, and why the others do not."""
    bounds = Limits(min_free_bytes=1, **limits)
    admission = Admission(
        Settings(open=True, limits=bounds), Quota(bounds, clock), lambda said: None
    )
    context = TenantContext("", admission, None, MediaBudget(bounds), bounds)
    intake = WindowIntake(context, SimpleNamespace(windows=WINDOWS), simulate=False, clock=clock)
    begun, refused = [], []
    for number in range(num_windows):
        why = intake._charge(number)
        if why is None:
            begun.append(number)
        else:
            refused.append(str(why))
        clock.now_s += STEP_S / speed
    return begun, refused


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_camera_at_its_pace_loses_nothing(speed):
    begun, refused = began(Clock(), speed, num_windows=2000)
    assert (len(begun), refused) == (2000, [])


def test_times_that_run_faster_than_the_clock_begin_two_windows_in_a_step():
    begun, refused = began(Clock(), speed=100.0, num_windows=20_000)
    assert begun[:MAX_AT_ONCE] == list(range(MAX_AT_ONCE)), "a short recording passes"
    assert len(begun) == pytest.approx(MAX_AT_ONCE + 2 * 20_000 / 100, abs=2)
    assert set(refused) == {"flood"}


def test_what_the_clock_refuses_is_not_charged_as_a_request():
    begun, refused = began(
        Clock(), speed=1e9, num_windows=100, tenant_requests_per_minute=MAX_AT_ONCE + 1
    )
    assert len(begun) == MAX_AT_ONCE
    assert set(refused) == {"flood"}, "one request is left"


def test_what_the_rates_refuse_leaves_the_clock_alone():
    begun, refused = began(Clock(), speed=1e9, num_windows=100, tenant_requests_per_minute=10)
    assert (len(begun), set(refused)) == (10, {"rate"})
