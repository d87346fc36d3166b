"""A drive: an endless seeded street, its scenes, and its clips of one second.

Scenes and clips depend on the seed and the time alone: every process gets the same ones, in any
order.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from math import sin
from random import Random

import numpy as np

from headstart.media.clip import Clip
from headstart.media.events import Events, SensorSize
from headstart.media.video import Video
from headstart_events.simulation import SensorModel, simulate
from headstart_lab.world.air import Eye
from headstart_lab.world.camera import Camera
from headstart_lab.world.kinds import Bend, Colour, Kind, Pace, Place, Role, Side
from headstart_lab.world.painter import render
from headstart_lab.world.scene import Road, Scene, Signal
from headstart_lab.world.sight import Presence, see, see_signal
from headstart_lab.world.stage import Stage
from headstart_lab.world.writing import write_stage

LAB_SIZE = SensorSize(168, 168)
"""Square, since the models crop to a square; a multiple of their patch size of 21 pixels."""
FRAME_HZ = 20
NUM_FRAMES = 8
WINDOW_US = 50_000
WINDOW_STEP_US = 10_000
SECOND_US = 1_000_000
PARKED_EVERY_M = 9.0
MIN_STEP_M = 0.02


def last_frame_us(index: int) -> int:
    """The time of the last frame of a second, which the reference answers describe."""
    return index * SECOND_US + (FRAME_HZ - 1) * (SECOND_US // FRAME_HZ)


@dataclass(frozen=True, eq=False)
class LabClip:
    """One second of a drive: 8 frames over it, and the events of its last 50 ms.

    ``scene`` is the scene at the last frame, when the events begin.
    """

    index: int
    clip: Clip
    scene: Scene


class Drive:
    """The drive of one seed, through a camera of one size. Not thread-safe."""

    def __init__(
        self,
        seed: int,
        size: SensorSize = LAB_SIZE,
        write: Callable[[int, int, Stage | None], Stage] = write_stage,
    ) -> None:
        self.seed, self.size = seed, size
        self._write = write
        self._stages: list[Stage] = []
        self._starts: list[int] = []

    def scene(self, time_us: int) -> Scene:
        """The scene at a time, which is 0 or later."""
        seconds = time_us / SECOND_US
        stage = self._stage(seconds)
        time = seconds - stage.start_s
        around = stage.surroundings
        way, mps = stage.way(time), stage.speed.at(time)
        curvature = stage.curvature.at(time)
        # A moving car shakes, so that its event camera sees the outline of everything.
        tremble = min(1.0, mps / 3.0) * self.size.width / 168
        camera = Camera(
            size=self.size,
            x=around.car_x,
            yaw=stage.yaw(time),
            curvature=curvature,
            bob_px=1.0 * tremble * sin(seconds * 43.0),
            sway_px=0.8 * tremble * sin(seconds * 31.0),
        )
        junction_z = None if stage.junction_m is None else stage.junction_m - way
        road = Road(
            place=around.place,
            num_lanes=around.num_lanes,
            bend=_bend(curvature),
            edge=around.edge,
            left=around.left,
            right=around.right,
            landmark=around.landmark,
            junction_z=junction_z,
            zebra_z=None if stage.zebra_m is None else stage.zebra_m - way,
            travelled_m=stage.origin_m + way,
            scenery_seed=around.seed,
        )
        present = [*_acting(stage, time, way), *_parked(stage, way, junction_z)]
        things = see(present, camera, stage.weather, stage.daylight, mps)
        signal = None
        if stage.signal is not None and 2.0 < (z := stage.signal.along - way) < 60.0:
            signal = see_signal(Signal(stage.signal.at(time), z, False), road, camera, things)
        return Scene(
            time_us=time_us,
            camera=camera,
            road=road,
            weather=stage.weather,
            daylight=stage.daylight,
            pace=_pace(mps),
            turning=stage.turning(time),
            things=things,
            signal=signal,
        )

    def clip(self, index: int) -> LabClip:
        """Second ``index`` of the drive."""
        times_us = frame_times_us(index)
        scenes = [self.scene(time_us) for time_us in times_us]
        video = Video(np.stack([render(scene) for scene in scenes]), np.array(times_us))
        return LabClip(index, Clip(video, self.events(index)), scenes[-1])

    def events(self, index: int) -> Events:
        """The events of the last 50 ms of second ``index``."""
        start_us = index * SECOND_US
        stop_us = start_us + SECOND_US
        # The last instant belongs to this second: the next second may show another street.
        times_us = [*range(stop_us - WINDOW_US, stop_us, WINDOW_STEP_US), stop_us - 1]
        # Each second has noise of its own, which depends on the seed and the second alone.
        noise = np.random.default_rng([self.seed, index]).integers(1 << 29)
        frames = ((time_us, render(self.scene(time_us), Eye.EVENTS)) for time_us in times_us)
        pieces = list(
            simulate(
                frames, SensorModel(leak_rate_hz=0.03, shot_noise_rate_hz=0.2, seed=int(noise))
            )
        )
        return Events.concatenate(pieces).between(stop_us - WINDOW_US, stop_us)

    def _stage(self, seconds: float) -> Stage:
        while not self._stages or self._stages[-1].start_s + self._stages[-1].duration_s <= seconds:
            previous = self._stages[-1] if self._stages else None
            self._stages.append(self._write(self.seed, len(self._stages), previous))
            self._starts.append(self._stages[-1].start_s)
        return self._stages[bisect_right(self._starts, seconds) - 1]


def frame_times_us(index: int) -> list[int]:
    """The times of the frames of clip ``index``, in any drive."""
    chosen = np.linspace(0, FRAME_HZ - 1, NUM_FRAMES).astype(np.int64)
    return [index * SECOND_US + int(each) * (SECOND_US // FRAME_HZ) for each in chosen]


def _acting(stage: Stage, time: float, way: float) -> list[Presence]:
    present = []
    for actor in stage.actors:
        if not actor.start_s <= time <= actor.stop_s:
            continue
        later = time + WINDOW_US / SECOND_US
        x, z = actor.across.at(time), actor.along.at(time)
        later_x, later_z = actor.across.at(later), actor.along.at(later)
        from_m, later_from_m = (0.0, 0.0) if actor.follows else (way, stage.way(later))
        stride, later_stride = x + z, later_x + later_z
        if actor.follows:
            stride, later_stride = stride + way, later_stride + stage.way(later)
        z, later_z = z - from_m, later_z - later_from_m
        if not 1.5 < z < 100.0:
            continue
        moves = abs(later_stride - stride) > MIN_STEP_M
        role, side = actor.role, actor.side
        if role is Role.CROSSING and not moves:
            # Before and after crossing they stand at the side of the road.
            role, side = Role.WAITING, Side.LEFT if x < 0 else Side.RIGHT
        present.append(
            Presence(actor.kind, actor.colour, role, side, x, z, later_x, later_z, stride, moves)
        )
    return present


def _parked(stage: Stage, way: float, junction_z: float | None) -> list[Presence]:
    """Parked vehicles; they depend on the place on the road, not on the time."""
    around = stage.surroundings
    if around.place not in (Place.CITY, Place.SUBURB) or not around.parked_share:
        return []
    here = stage.origin_m + way
    present = []
    first = int(here // PARKED_EVERY_M)
    for cell in range(first, first + 7):
        for side in (Side.LEFT, Side.RIGHT):
            random = Random(f"{around.seed}/{cell}/{side.value}")
            if random.random() >= around.parked_share:
                continue
            z = cell * PARKED_EVERY_M + random.uniform(0.0, 3.0) - here
            if z < 1.5 or (junction_z is not None and -6.0 < z - junction_z < 10.0):
                continue
            kind = random.choice((Kind.CAR, Kind.CAR, Kind.CAR, Kind.TRUCK, Kind.MOTORCYCLE))
            x = 3.5 * around.num_lanes / 2 + 1.2
            x = -x if side is Side.LEFT else x
            colour = random.choice(list(Colour))
            present.append(Presence(kind, colour, Role.PARKED, side, x, z, x, z, 0.0, False))
    return present


def _bend(curvature: float) -> Bend:
    if abs(curvature) < 0.0025:
        return Bend.STRAIGHT
    return Bend.RIGHT if curvature > 0 else Bend.LEFT


def _pace(mps: float) -> Pace:
    if mps < 0.3:
        return Pace.STANDING
    if mps < 7.0:
        return Pace.SLOW
    return Pace.MODERATE if mps < 15.0 else Pace.FAST
