"""Draws the road users of a stage."""

from dataclasses import dataclass, replace
from random import Random

from headstart_lab.world.kinds import Colour, Kind, Place, Role, Side
from headstart_lab.world.profile import Profile
from headstart_lab.world.stage import Actor, Stage, Surroundings

ENGINES = (Kind.CAR, Kind.CAR, Kind.CAR, Kind.TRUCK, Kind.BUS, Kind.MOTORCYCLE)


@dataclass(frozen=True)
class Traffic:
    """How busy one kind of place is.

    ``ahead``, ``beside`` and ``cyclists`` are shares of stages that have one; ``oncoming_hz`` is
    arrivals a second; ``walkers`` is groups every 100 m.
    """

    ahead: float
    oncoming_hz: float
    beside: float
    walkers: float
    cyclists: float


TRAFFIC = {
    Place.CITY: Traffic(ahead=0.6, oncoming_hz=0.3, beside=0.6, walkers=3.0, cyclists=0.35),
    Place.SUBURB: Traffic(ahead=0.55, oncoming_hz=0.22, beside=0.0, walkers=2.0, cyclists=0.4),
    Place.COUNTRY: Traffic(ahead=0.65, oncoming_hz=0.28, beside=0.0, walkers=0.3, cyclists=0.3),
    Place.FOREST: Traffic(ahead=0.65, oncoming_hz=0.28, beside=0.0, walkers=0.4, cyclists=0.3),
    Place.MOUNTAIN: Traffic(ahead=0.65, oncoming_hz=0.25, beside=0.0, walkers=0.4, cyclists=0.35),
    Place.HIGHWAY: Traffic(ahead=0.75, oncoming_hz=0.45, beside=0.9, walkers=0.0, cyclists=0.0),
}


def cast(
    random: Random,
    surroundings: Surroundings,
    speed: Profile,
    halt: tuple[float, float] | None,
    zebra_m: float | None,
    junction_m: float | None,
    previous: Stage | None,
) -> tuple[Actor, ...]:
    """All road users of a stage."""
    street = _Street(random, surroundings, speed, halt)
    traffic = TRAFFIC[surroundings.place]
    actors: list[Actor] = []
    if zebra_m is None:
        actors += street.ahead(previous, traffic.ahead)
    if surroundings.num_lanes == 4:
        actors += street.beside(traffic.beside)
    actors += street.oncoming(traffic.oncoming_hz)
    actors += street.walkers(traffic.walkers)
    actors += street.cyclist(traffic.cyclists)
    if halt and zebra_m:
        actors += street.crossing_people(zebra_m, junction_m)
        if junction_m:
            actors += street.crossing_vehicles(junction_m + 3.0)
    return tuple(actors)


class _Street:
    def __init__(
        self,
        random: Random,
        surroundings: Surroundings,
        speed: Profile,
        halt: tuple[float, float] | None,
    ) -> None:
        self.random, self.speed, self.halt = random, speed, halt
        self.car_x, self.half_m = surroundings.car_x, 3.5 * surroundings.num_lanes / 2
        self.lane = surroundings.lane
        self.num_lanes = surroundings.num_lanes
        self.cruise = max(speed.values)
        self.end_s = speed.times[-1]

    def ahead(self, previous: Stage | None, share: float) -> list[Actor]:
        """The vehicle in front; on the same road it often stays from the previous stage."""
        leaders = (
            [a for a in previous.actors if a.follows and a.role is Role.AHEAD] if previous else []
        )
        gaps = self._gaps()
        if leaders and previous and previous.exit.value == "none" and self.random.random() < 0.75:
            gaps = replace(gaps, values=(leaders[0].along.values[-1], *gaps.values[1:]))
            return [replace(leaders[0], start_s=0.0, stop_s=self.end_s, along=gaps)]
        if self.random.random() >= share:
            return []
        return [
            self._actor(self._engine(), Role.AHEAD, Side.CENTRE, self.car_x, gaps, follows=True)
        ]

    def beside(self, share: float) -> list[Actor]:
        """A vehicle that overtakes the car or is overtaken, in the other lane of its direction."""
        if self.random.random() >= share or self.halt:
            return []
        other = 5.25 if self.lane == 0 else 1.75
        side = Side.RIGHT if self.lane == 0 else Side.LEFT
        near, far = -10.0, self.random.uniform(70, 90)
        gaps = (near, far) if self.random.random() < 0.5 else (far, near)
        start = self.random.uniform(-8.0, self.end_s * 0.5)
        stop = start + self.random.uniform(12, 24)
        actor = self._actor(
            self._engine(), Role.BESIDE, side, other, Profile((start, stop), gaps), follows=True
        )
        return [actor]

    def oncoming(self, rate_hz: float) -> list[Actor]:
        """Vehicles of the other direction, one after the other."""
        actors = []
        time = -4.0
        while (time := time + 1.2 + self.random.expovariate(rate_hz)) < self.end_s:
            mps = self.cruise * self.random.uniform(0.7, 1.1)
            lane = self.random.randrange(self.num_lanes // 2)
            start = self.speed.integral(max(time, 0.0)) + 90.0
            path = Profile((time, time + 30.0), (start, start - mps * 30.0))
            x = -(1.75 + 3.5 * lane)
            actor = self._actor(self._engine(), Role.ONCOMING, Side.LEFT, x, path)
            actors.append(replace(actor, start_s=time))
        return actors

    def walkers(self, num_every_100m: float) -> list[Actor]:
        """People on foot beside the road, alone or together, walking or waiting."""
        actors: list[Actor] = []
        start = self.random.uniform(5.0, 20.0)
        while num_every_100m and start < self.speed.integral(self.end_s) + 30.0:
            side = self.random.choice((Side.LEFT, Side.RIGHT))
            role = self.random.choice((Role.WALKING, Role.WALKING, Role.WAITING))
            mps = self.random.choice((-1.3, 1.3)) if role is Role.WALKING else 0.0
            x = self.half_m + (2.9 if role is Role.WALKING else 2.3)
            if side is Side.LEFT:
                x = -x
            for number in range(self.random.choice((1, 1, 2, 3))):
                along = start + 1.2 * number
                path = Profile((0.0, 60.0), (along, along + 60.0 * mps))
                across = x + 0.45 * (number % 2)
                actors.append(self._actor(Kind.PEDESTRIAN, role, side, across, path))
            start += 8.0 + self.random.expovariate(num_every_100m / 100.0)
        return actors

    def cyclist(self, share: float) -> list[Actor]:
        """A cyclist at the right edge, in the car's direction."""
        if self.random.random() >= share:
            return []
        start = self.random.uniform(9.0, 20.0)
        mps = min(self.cruise * 0.75, 6.0)
        path = Profile((0.0, 60.0), (start, start + 60.0 * mps))
        return [self._actor(Kind.CYCLIST, Role.AHEAD, Side.RIGHT, self.half_m - 0.7, path)]

    def crossing_people(self, zebra_m: float, junction_m: float | None) -> list[Actor]:
        """The people for whom the car stops."""
        assert self.halt is not None
        if junction_m is not None and self.random.random() < 0.45:
            return []
        begin = self.halt[0] - self.random.uniform(0.2, 1.5)
        kind = Kind.CYCLIST if self.random.random() < 0.2 else Kind.PEDESTRIAN
        num_people = 1 if kind is Kind.CYCLIST else self.random.choice((1, 1, 2, 3))
        mps = 2.5 if kind is Kind.CYCLIST else 1.5
        side = self.random.choice((Side.LEFT, Side.RIGHT))
        way = 2 * self.half_m + 4.0
        actors = []
        for number in range(num_people):
            start = begin + 0.7 * number
            edge = -way / 2 if side is Side.LEFT else way / 2
            across = Profile((start, start + way / mps), (edge, -edge))
            actor = self._actor(
                kind, Role.CROSSING, side, 0.0, Profile.steady(zebra_m + 0.5 * (number % 2))
            )
            actors.append(replace(actor, across=across))
        return actors

    def crossing_vehicles(self, along: float) -> list[Actor]:
        """The traffic of the crossing street while the car waits."""
        assert self.halt is not None
        actors = []
        time = self.halt[0] + self.random.uniform(-1.0, 2.0)
        while time < self.halt[1] - 2.0:
            side = self.random.choice((Side.LEFT, Side.RIGHT))
            edge = -45.0 if side is Side.LEFT else 45.0
            across = Profile((time - 2.5, time + 7.5), (edge, -3 * edge))
            row = along + (3.5 if side is Side.RIGHT else 0.0)
            actor = self._actor(self._engine(), Role.CROSSING, side, 0.0, Profile.steady(row))
            actors.append(replace(actor, across=across, start_s=time - 3.0, stop_s=time + 3.0))
            time += self.random.uniform(2.0, 5.0)
        return actors

    def _gaps(self) -> Profile:
        low, high = (8.0, 24.0) if self.cruise < 20.0 else (13.0, 26.0)
        times, gaps = [0.0], [self.random.uniform(low, high)]
        while times[-1] < self.end_s:
            times.append(times[-1] + self.random.uniform(2.5, 5.0))
            gaps.append(self.random.uniform(low, high))
        if not self.halt:
            return Profile(tuple(times), tuple(gaps))
        stand, leave = self.halt
        return Profile((0.0, stand, leave - 0.7, leave + 4.0), (gaps[0], 6.5, 6.5, gaps[1]))

    def _engine(self) -> Kind:
        return self.random.choice(ENGINES)

    def _actor(
        self, kind: Kind, role: Role, side: Side, x: float, along: Profile, follows: bool = False
    ) -> Actor:
        colour = self.random.choice(list(Colour))
        return Actor(
            kind, colour, role, side, 0.0, self.end_s, Profile.steady(x), along, follows=follows
        )
