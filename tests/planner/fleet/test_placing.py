"""Where cameras go, and that only those of a dead engine move."""

import numpy as np
import pytest

from headstart.errors import PlanningError
from headstart_research.planning.fleet.placing import Ring
from tests.planner.fleet.even_placing import EvenPlacing

CAMERAS = np.arange(20_000)


def up(num_engines, *gone):
    is_up = np.ones(num_engines, dtype=bool)
    is_up[list(gone)] = False
    return is_up


@pytest.mark.parametrize("placing", [Ring(50), EvenPlacing(50)], ids=["ring", "even"])
def test_only_the_cameras_of_a_dead_engine_move_and_not_all_to_one(placing):
    home = placing.owners(CAMERAS, up(50))
    away = placing.owners(CAMERAS, up(50, 7, 8))
    moved = np.isin(home, (7, 8))
    assert moved.any()
    assert (home[~moved] == away[~moved]).all()
    assert not np.isin(away, (7, 8)).any()
    assert len(set(away[moved].tolist())) > 40


def test_a_ring_fills_engines_unevenly_and_even_placing_does_not():
    ring, even = (np.bincount(each.owners(CAMERAS, up(50))) for each in (Ring(50), EvenPlacing(50)))
    assert ring.std() / ring.mean() == pytest.approx(0.09, abs=0.03)  # 1 / sqrt(160), and chance
    assert even.max() - even.min() <= 1


def test_a_camera_is_placed_the_same_way_alone_and_among_others():
    ring = Ring(9)
    assert ring.owners(CAMERAS[123:124], up(9))[0] == ring.owners(CAMERAS, up(9))[123]


def test_no_engine_is_an_error():
    with pytest.raises(PlanningError, match="no engine of the fleet is up"):
        Ring(2).owners(CAMERAS, up(2, 0, 1))
