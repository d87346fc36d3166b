"""The target's sentences about the street, the weather and the light, and the car's own motion."""

from headstart_lab.language.facts import Fact
from headstart_lab.language.remarks import AIR_REMARKS, REMARKS
from headstart_lab.language.sighting import Ground, Sighting
from headstart_lab.language.speech import Line, Phrasing, pick, sentence, state
from headstart_lab.world.kinds import Landmark, Pace, Turning

_OURS = Phrasing.TARGET


class StreetSentences:
    """Sentences about what the colour camera sees of the surroundings."""

    def __init__(self, sighting: Sighting) -> None:
        self.sighting = sighting
        assert sighting.ground is not None
        self.ground: Ground = sighting.ground
        # The most salient group takes part in choosing the wording of other sentences.
        first = sighting.groups[0] if sighting.groups else None
        self.focus = (
            f"{first.kind.value} {first.role.value} {first.reach.value}" if first else "nobody"
        )
        self.air = f"{sighting.weather} {sighting.daylight}"
        self.street = f"{self.ground.left} {self.ground.right}"

    def road(self) -> Line:
        """The road as a noun phrase."""
        place = state(_OURS, "place", "is", self.ground.place.value, self.air)
        lanes = state(_OURS, "road", "lanes", str(self.ground.num_lanes))
        adjective = {"2": "two-lane", "4": "four-lane"}[str(self.ground.num_lanes)]
        if pick((True, False), "lanes", self.focus):
            return Line(f"a {adjective} {place.text}", lanes.facts + place.facts)
        article = "an" if place.text[0] in "aeiou" else "a"
        return Line(f"{article} {place.text}", place.facts)

    def flanks(self) -> Line:
        """What stands on both sides of the road."""
        ground = self.ground
        left = state(_OURS, "left side", "is", ground.left.value, ground.right, self.ground.edge)
        right = state(_OURS, "right side", "is", ground.right.value, ground.left, self.air)
        facts = (*left.facts, *right.facts)
        if ground.left is ground.right:
            template = pick(
                (
                    "{} can be seen on both sides of the road",
                    "the road is lined by {} on either side",
                    "on both sides one sees {}",
                    "we pass {} on both sides",
                    "either side features {}",
                ),
                self.street,
                self.air,
            )
            return sentence(Line(template.format(left.text), facts))
        template = pick(
            (
                "{} can be seen on the left and {} on the right",
                "on the left one sees {}, and on the right {}",
                "the left side is lined by {}, the right side by {}",
                "we pass {} on the left, then {} on the right",
                "to the left lie {}, to the right {}",
                "the left-hand side features {} and the right-hand side {}",
            ),
            self.street,
            self.air,
        )
        return sentence(Line(template.format(left.text, right.text), facts))

    def horizon(self) -> Line:
        """What stands far away."""
        if self.ground.landmark is Landmark.NOTHING:
            return self.remark()
        far = state(_OURS, "horizon", "shows", self.ground.landmark.value, self.focus)
        template = pick(
            (
                "the background shows {}",
                "far away one can make out {}",
                "{} can be seen on the horizon",
            ),
            self.air,
            self.ground.landmark,
        )
        return sentence(Line(template.format(far.text), far.facts))

    def sky(self) -> Line:
        """Weather and time of day."""
        weather, time = self.air_words()
        template = pick(
            (
                "it appears to be a {} {}",
                "it looks like a {} {}",
                "the picture was taken on a {} {}",
                "everything points to a {} {}",
                "we drive through a {} {}",
                "the light suggests a {} {}",
                "it is a {} {}",
                "this must be a {} {}",
            ),
            self.street,
            self.sighting.pace,
        )
        return sentence(Line(template.format(weather.text, time.text), weather.facts + time.facts))

    def course(self) -> Line:
        """The bend of the road."""
        bend = state(_OURS, "road", "bend", self.ground.bend.value, self.ground.place)
        tail = pick(("", " in front of the car", " from here"), self.ground.bend, self.focus)
        return sentence(Line(f"the road {bend.text}{tail}", bend.facts))

    def lanes(self) -> Line:
        """The number of lanes."""
        num = str(self.ground.num_lanes)
        words = {"2": "one lane each way", "4": "two lanes each way"}[num]
        verb = pick(("it has", "there is room for", "it offers"), self.ground.place, self.air)
        return sentence(Line(f"{verb} {words}", (Fact("road", "lanes", num),)))

    def edge(self) -> Line:
        """What bounds the carriageway."""
        edge = state(_OURS, "road", "edge", self.ground.edge.value, self.focus)
        verb = pick(("it is bordered by", "its edge is marked by", "next to it runs"), self.air)
        return sentence(Line(f"{verb} {edge.text}", edge.facts))

    def junction(self) -> Line:
        """Whether a street crosses."""
        if not self.ground.has_junction:
            return Line("")
        junction = state(_OURS, "junction", "is", "ahead", self.air)
        verb = pick(("we are getting to", "there is also", "the road leads to"), self.ground.place)
        return sentence(Line(f"{verb} {junction.text}", junction.facts))

    def pace(self) -> Line:
        """What our own car does."""
        sighting = self.sighting
        pace = state(_OURS, "our car", "pace", sighting.pace.value, self.ground.place)
        if sighting.pace is Pace.STANDING:
            verb = "" if pace.text.startswith("has") else "is "
            return sentence(Line(f"our car {verb}{pace.text}", pace.facts))
        verb = pick(
            ("is moving", "is driving", "seems to be moving", "is rolling", "travels"),
            self.ground.place,
            self.air,
        )
        line = Line(f"our car {verb} {pace.text}", pace.facts)
        if sighting.turning is not Turning.NONE:
            turn = state(_OURS, "our car", "turn", sighting.turning.value, self.air)
            line = line.then(",") + Line("and it is") + turn
        return sentence(line)

    def comment(self) -> Line:
        """A remark about weather and light that states no fact."""
        weather, daylight = self.sighting.weather, self.sighting.daylight
        assert weather is not None
        assert daylight is not None
        return Line(pick(AIR_REMARKS[weather, daylight], self.ground.place))

    def remark(self) -> Line:
        """A remark about the place that states no fact."""
        return Line(pick(REMARKS[self.ground.place], self.air, self.focus))

    def air_words(self) -> tuple[Line, Line]:
        """The weather as an adjective, and the time of day."""
        weather, daylight = self.sighting.weather, self.sighting.daylight
        assert weather is not None
        assert daylight is not None
        adjectives = {
            "clear": ("clear", "dry", "cloudless"),
            "rain": ("rainy", "showery", "drizzly"),
            "fog": ("foggy", "misty", "hazy"),
        }
        nouns = {"day": "day", "dusk": "evening", "night": "night"}
        adjective = pick(adjectives[weather.value], self.street)
        return (
            Line(adjective, (Fact("weather", "is", weather.value),)),
            Line(nouns[daylight.value], (Fact("time", "is", daylight.value),)),
        )
