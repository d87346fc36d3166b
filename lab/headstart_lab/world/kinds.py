"""The enumerations of the world: every kind of thing, state and place in a scene."""

from enum import Enum


class Place(Enum):
    """What sort of surroundings the road runs through."""

    CITY = "city"
    SUBURB = "suburb"
    COUNTRY = "country"
    FOREST = "forest"
    MOUNTAIN = "mountain"
    HIGHWAY = "highway"


class Flank(Enum):
    """What lines one side of the road."""

    BUILDINGS = "buildings"
    HOUSES = "houses"
    TREES = "trees"
    FIELD = "field"
    ROCKS = "rocks"
    FENCE = "fence"
    HEDGE = "hedge"
    LAMPS = "lamps"


class Edge(Enum):
    """Where the carriageway ends."""

    KERB = "kerb"
    GUARD_RAIL = "guard rail"
    VERGE = "verge"


class Landmark(Enum):
    """What stands at the horizon."""

    NOTHING = "nothing"
    HILLS = "hills"
    MOUNTAINS = "mountains"
    TOWERS = "towers"
    CHURCH = "church"
    TURBINES = "turbines"
    LAKE = "lake"


class Weather(Enum):
    """What falls or hangs in the air."""

    CLEAR = "clear"
    RAIN = "rain"
    FOG = "fog"


class Daylight(Enum):
    """How much light there is."""

    DAY = "day"
    DUSK = "dusk"
    NIGHT = "night"


class Bend(Enum):
    """Which way the road ahead runs."""

    STRAIGHT = "straight"
    LEFT = "left"
    RIGHT = "right"


class Turning(Enum):
    """Which way the car itself is turning."""

    NONE = "none"
    LEFT = "left"
    RIGHT = "right"


class Pace(Enum):
    """How fast the car itself goes."""

    STANDING = "standing"
    SLOW = "slow"
    MODERATE = "moderate"
    FAST = "fast"


class Kind(Enum):
    """What a thing is."""

    CAR = "car"
    TRUCK = "truck"
    BUS = "bus"
    MOTORCYCLE = "motorcycle"
    CYCLIST = "cyclist"
    PEDESTRIAN = "pedestrian"

    @property
    def is_vehicle(self) -> bool:
        """Whether it has an engine."""
        return self not in (Kind.CYCLIST, Kind.PEDESTRIAN)


class Role(Enum):
    """What a thing does on the road."""

    AHEAD = "ahead"
    BESIDE = "beside"
    ONCOMING = "oncoming"
    PARKED = "parked"
    CROSSING = "crossing"
    WAITING = "waiting"
    WALKING = "walking"


class Side(Enum):
    """Left and right of the road; for what crosses, the side it comes from."""

    LEFT = "left"
    RIGHT = "right"
    CENTRE = "centre"


class Colour(Enum):
    """Paint and clothes, far enough apart to tell at a few pixels."""

    RED = "red"
    BLUE = "blue"
    WHITE = "white"
    BLACK = "black"
    YELLOW = "yellow"
    GREEN = "green"


class Lamp(Enum):
    """What a traffic light shows."""

    RED = "red"
    AMBER = "amber"
    GREEN = "green"
