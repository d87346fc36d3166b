"""Generates stages: the next street and what happens there, drawn from the drive's seed."""

from dataclasses import dataclass, replace
from random import Random

from headstart_lab.world.casting import cast
from headstart_lab.world.kinds import (
    Daylight,
    Edge,
    Flank,
    Lamp,
    Landmark,
    Place,
    Turning,
    Weather,
)
from headstart_lab.world.profile import Profile
from headstart_lab.world.stage import SignalPlan, Stage, Surroundings

TURN_MPS = 4.5
HOLD_S = (3.0, 7.0)
"""How long a car stands when it stops."""
NUM_CASTS = 7
"""A crowded stage has as many road users as this many ordinary ones."""


@dataclass(frozen=True)
class Habits:
    """What is usual at one kind of place."""

    speed_mps: tuple[float, float]
    num_lanes: tuple[int, ...]
    edges: tuple[Edge, ...]
    flanks: tuple[Flank, ...]
    landmarks: tuple[Landmark, ...]
    curvatures: tuple[float, ...]
    stop_share: float
    parked_shares: tuple[float, ...] = (0.0,)


_L, _F = Landmark, Flank
HABITS = {
    Place.CITY: Habits(
        (8, 12), (2, 2, 4), (Edge.KERB,), (_F.BUILDINGS, _F.BUILDINGS, _F.BUILDINGS, _F.LAMPS),
        (_L.NOTHING, _L.TOWERS, _L.CHURCH), (0, 0, 0, 0.006), 0.65, (0, 0.2, 0.45),
    ),
    Place.SUBURB: Habits(
        (8, 13), (2,), (Edge.KERB, Edge.VERGE), (_F.HOUSES, _F.HOUSES, _F.TREES, _F.HEDGE),
        (_L.NOTHING, _L.CHURCH, _L.HILLS), (0, 0, 0.006, 0.009), 0.45, (0, 0.15, 0.3),
    ),
    Place.COUNTRY: Habits(
        (13, 20), (2,), (Edge.VERGE, Edge.GUARD_RAIL), (_F.FIELD, _F.FIELD, _F.TREES, _F.FENCE),
        (_L.HILLS, _L.TURBINES, _L.CHURCH, _L.LAKE), (0, 0.006, 0.009), 0.12,
    ),
    Place.FOREST: Habits(
        (11, 16), (2,), (Edge.VERGE, Edge.GUARD_RAIL), (_F.TREES, _F.TREES, _F.TREES, _F.FENCE),
        (_L.NOTHING, _L.HILLS), (0, 0.007, 0.01), 0.12,
    ),
    Place.MOUNTAIN: Habits(
        (8, 13), (2,), (Edge.GUARD_RAIL, Edge.VERGE), (_F.ROCKS, _F.TREES, _F.FIELD, _F.ROCKS),
        (_L.MOUNTAINS, _L.MOUNTAINS, _L.LAKE), (0, 0.009, 0.012), 0.1,
    ),
    Place.HIGHWAY: Habits(
        (22, 30), (4,), (Edge.GUARD_RAIL,), (_F.FIELD, _F.TREES, _F.LAMPS, _F.HEDGE),
        (_L.HILLS, _L.TOWERS, _L.TURBINES, _L.NOTHING), (0, 0, 0.004), 0.15,
    ),
}  # fmt: skip


def write_stage(
    seed: int,
    number: int,
    previous: Stage | None,
    hold_s: tuple[float, float] = HOLD_S,
) -> Stage:
    """The stage after ``previous``; it depends on the arguments alone."""
    random = Random(f"{seed}/{number}")
    entry = previous.exit if previous else Turning.NONE
    if previous is None or entry is not Turning.NONE:
        surroundings = _surroundings(random, previous)
    else:
        surroundings = previous.surroundings
    habits = HABITS[surroundings.place]
    leaves = [Turning.NONE] * 6 + [Turning.LEFT, Turning.RIGHT] * 3
    if surroundings.place is Place.HIGHWAY:
        leaves += [Turning.NONE] * 8
    leave = random.choice(leaves)
    start_mps = previous.speed.values[-1] if previous else random.uniform(*habits.speed_mps)
    stop = random.random() < habits.stop_share
    speed, halt = _speed(random, habits, start_mps, hold_s if stop else None, leave)
    duration = int(speed.times[-1])
    bend = random.choice((-1, 1)) * random.choice(habits.curvatures)
    before = previous.curvature.values[-1] if previous and entry is Turning.NONE else bend
    plan = _Plan.draw(random, surroundings.place, speed, halt, leave)
    weather, daylight = _sky(random, previous)
    return Stage(
        start_s=previous.start_s + previous.duration_s if previous else 0,
        duration_s=duration,
        origin_m=previous.origin_m + previous.way(previous.duration_s) if previous else 0.0,
        surroundings=surroundings,
        weather=weather,
        daylight=daylight,
        entry=entry,
        exit=leave,
        speed=speed,
        curvature=Profile((0.5, 3.0), (before, bend)),
        junction_m=plan.junction_m,
        zebra_m=plan.zebra_m,
        signal=plan.signal,
        actors=cast(random, surroundings, speed, halt, plan.zebra_m, plan.junction_m, previous),
    )


def write_crowded_stage(seed: int, number: int, previous: Stage | None) -> Stage:
    """The same stage with the actors of several: a street too full to drive on, for pictures."""
    stage = write_stage(seed, number, previous)
    actors = list(stage.actors)
    for each in range(1, NUM_CASTS):
        random = Random(f"{seed}/{number}/{each}")
        actors += cast(random, stage.surroundings, stage.speed, None, stage.zebra_m, None, None)
    return replace(stage, actors=tuple(actors))


def _surroundings(random: Random, previous: Stage | None) -> Surroundings:
    near = list(Place)
    if previous:
        # Cities and suburbs are more frequent than the others.
        near = [place for place in near if place is not previous.surroundings.place]
        near += [Place.CITY, Place.SUBURB]
    place = random.choice([*near, Place.CITY])
    habits = HABITS[place]
    num_lanes = random.choice(habits.num_lanes)
    return Surroundings(
        place=place,
        num_lanes=num_lanes,
        lane=random.randrange(num_lanes // 2),
        edge=random.choice(habits.edges),
        left=random.choice(habits.flanks),
        right=random.choice(habits.flanks),
        landmark=random.choice(habits.landmarks),
        parked_share=random.choice(habits.parked_shares),
        seed=random.randrange(1 << 30),
    )


def _speed(
    random: Random,
    habits: Habits,
    start_mps: float,
    hold_s: tuple[float, float] | None,
    leave: Turning,
) -> tuple[Profile, tuple[float, float] | None]:
    """The car's speed over the stage, and the time span in which it stands, if it does."""
    cruise = random.uniform(*habits.speed_mps)
    points = [(0.0, start_mps)]
    halt = None
    if hold_s is not None:
        brake = random.uniform(1.0, 3.0)
        stand = brake + max(start_mps, 6.0) / 3.0 + random.uniform(0.3, 1.0)
        hold = random.uniform(*hold_s)
        points += [(brake, max(start_mps, 6.0)), (stand, 0.0), (stand + hold, 0.0)]
        halt = (stand, stand + hold)
        points.append((stand + hold + cruise / 3.5, cruise))
    else:
        points.append((1.5 + abs(cruise - start_mps) / 3.0, cruise))
        for _ in range(random.randrange(3)):
            # The car slows down and speeds up with the traffic.
            time = points[-1][0] + random.uniform(2.0, 4.0)
            points.append((time, cruise * random.uniform(0.55, 1.1)))
    time, last_mps = points[-1]
    if leave is not Turning.NONE:
        slow = time + random.uniform(0.5, 3.0)
        slowed = slow + 0.5 + max(last_mps - TURN_MPS, 0.0) / 4.0
        points += [(slow, last_mps), (slowed, TURN_MPS)]
        duration = int(slowed + 2.5)
    else:
        duration = int(time + random.uniform(1.5, 5.0)) + 1
    points.append((float(duration), points[-1][1]))
    return Profile(*(tuple(column) for column in zip(*points, strict=True))), halt


@dataclass(frozen=True)
class _Plan:
    """Why the car stops, and where another street crosses."""

    junction_m: float | None = None
    zebra_m: float | None = None
    signal: SignalPlan | None = None

    @classmethod
    def draw(
        cls,
        random: Random,
        place: Place,
        speed: Profile,
        halt: tuple[float, float] | None,
        leave: Turning,
    ) -> "_Plan":
        end_m = speed.integral(speed.times[-1])
        exit_junction = end_m + 2.0 if leave is not Turning.NONE else None
        in_town = place in (Place.CITY, Place.SUBURB)
        if halt is None:
            signal = None
            if in_town and exit_junction is not None and random.random() < 0.5:
                signal = SignalPlan(exit_junction + 10.0, ((0.0, Lamp.GREEN),))
            return cls(exit_junction, None, signal)
        stand, leave_s = halt
        stop_m = speed.integral(stand)
        reason = random.random()
        if not in_town or reason < 0.15:
            return cls(exit_junction)
        if reason < 0.45:
            return cls(exit_junction, stop_m + random.uniform(5.0, 8.0))
        amber = stand - random.uniform(2.0, 3.5)
        red = amber + 1.2
        changes = [(-99.0, Lamp.GREEN), (amber, Lamp.AMBER), (red, Lamp.RED)]
        if random.random() < 0.6:
            changes = [(-99.0, Lamp.RED)]
        changes.append((leave_s - 0.6, Lamp.GREEN))
        junction = stop_m + 10.0
        return cls(junction, stop_m + 5.0, SignalPlan(junction - 1.0, tuple(changes)))


def _sky(random: Random, previous: Stage | None) -> tuple[Weather, Daylight]:
    weathers = [Weather.CLEAR, Weather.CLEAR, Weather.RAIN, Weather.FOG]
    lights = [Daylight.DAY, Daylight.DAY, Daylight.DUSK, Daylight.NIGHT, Daylight.NIGHT]
    if previous is None:
        return random.choice(weathers), random.choice(lights)
    weather, daylight = previous.weather, previous.daylight
    if random.random() < 0.15:
        weather = random.choice(weathers)
    if random.random() < 0.08:
        following = {
            Daylight.DAY: Daylight.DUSK, Daylight.DUSK: Daylight.NIGHT, Daylight.NIGHT: Daylight.DAY
        }  # fmt: skip
        daylight = following[daylight]
    return weather, daylight
