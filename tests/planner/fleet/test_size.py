"""The engines of a fleet on paper, held against a ring that is really made."""

import numpy as np
import pytest

from headstart.errors import PlanningError
from headstart_research.planning.fleet.placing import Ring
from headstart_research.planning.fleet.size import (
    EngineSize,
    bounded_size,
    camera_bits_a_second,
    crowded_share,
    hashed_size,
)
from headstart_research.planning.live import LiveWindow


@pytest.mark.parametrize(("num_engines", "held"), [(1000, 24), (1000, 30), (400, 60)])
def test_the_share_on_crowded_engines_is_that_of_a_ring(num_engines, held):
    num_cameras = 20_000
    cameras = np.arange(num_cameras)
    home = Ring(num_engines).owners(cameras, np.ones(num_engines, dtype=bool))
    numbers = np.bincount(home, minlength=num_engines)
    on_ring = numbers[numbers > held].sum() / num_cameras
    forecast = crowded_share(num_cameras, num_engines, held)
    assert 0.005 < on_ring < 0.5
    assert forecast == pytest.approx(on_ring, rel=0.25)


def test_hashing_needs_more_engines_than_a_bound_and_one_fewer_is_too_few():
    hashed, bounded = hashed_size(10_000, 20, 0, 0.01), bounded_size(10_000, 20, 0, 1.25)
    assert bounded.num_engines == 625
    assert hashed.num_engines > 1.4 * bounded.num_engines
    assert crowded_share(10_000, hashed.num_engines, 20) <= 0.01
    assert crowded_share(10_000, hashed.num_engines - 1, 20) > 0.01


def test_larger_engines_are_filled_better():
    fills = [hashed_size(100_000, held, 1, 0.01).fill for held in (5, 20, 80, 320)]
    assert fills == sorted(fills)
    assert fills[0] < 0.3
    assert fills[-1] > 0.75


def test_spare_engines_are_paid_for():
    size = bounded_size(100, 10, 2)
    assert size.num_engines == 12
    assert size.monthly_price(2.0, num_gpus=4) == pytest.approx(12 * 4 * 2.0 * 730.5 / 100)


def test_the_kv_cache_holds_whole_windows():
    engine = EngineSize(1, 12 * 2**30, 512 * 2**10, 2126, 32)
    assert engine.max_windows == 11  # of 1063 MiB
    with pytest.raises(PlanningError, match="smaller than one window"):
        EngineSize(1, 2**30, 512 * 2**10, 2126, 32)


def test_a_frame_is_sent_once_however_many_windows_it_is_in():
    tumbling, stepping = LiveWindow(8, 4.0, 4.0, 0.1), LiveWindow(8, 4.0, 1.0, 0.1)
    assert camera_bits_a_second(tumbling, 1000) == camera_bits_a_second(stepping, 1000) == 16_000


def test_an_engine_that_holds_no_camera_is_an_error_with_what_to_change():
    with pytest.raises(PlanningError, match="allow a longer wait"):
        bounded_size(10, 0, 1)
    with pytest.raises(PlanningError, match="crowded"):
        hashed_size(10, 5, 1, 0.0)
