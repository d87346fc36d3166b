"""The target's house of style: full sentences, colours, hedges, the surroundings and the light."""

from collections.abc import Callable

from headstart.lab.language.facts import Fact
from headstart.lab.language.questions import Question
from headstart.lab.language.remarks import AIR_REMARKS, REMARKS
from headstart.lab.language.sighting import Ground, Group, Sighting
from headstart.lab.language.speech import (
    House,
    Line,
    advice,
    counted,
    group_facts,
    listed,
    noun_of,
    pick,
    role_of,
    sentence,
    state,
    told,
)
from headstart.lab.world.kinds import Kind, Lamp, Landmark, Pace, Role, Turning, Weather

_ME = House.TARGET

_MANY = {
    "is": "are", "appears to be": "appear to be", "seems to be": "seem to be", "looks": "look",
    "must be": "must be",
}  # fmt: skip

_ROADSIDE = (
    "the lane markings",
    "the grey asphalt",
    "the roadside",
    "not much else",
    "a stretch of tarmac",
)

_OPENINGS: dict[Question, tuple[str, ...]] = {
    Question.KEY_ELEMENTS: (
        "The main elements here are {}",
        "The most important elements of this scene are {}",
        "What stands out in this scene is {}",
        "The scene is made up of {}",
        "Above all one notices {}",
        "A viewer would first mention {}",
    ),
    Question.ELEMENTS: (
        "The picture contains {}",
        "This scene contains {}",
        "One can find {} in the picture",
        "There is a lot to see, such as {}",
    ),
    Question.ELABORATE: (
        "Looking closer, the clip shows {}",
        "In more detail, one can see {}",
        "The clip shows {}",
        "Among the details are {}",
    ),
    Question.ABOUT: (
        "This clip is about a drive along {}",
        "The clip follows a car along {}",
        "It is a short drive along {}",
        "The scene is about travelling on {}",
    ),
    Question.GOING_ON: (
        "It seems that we are travelling on {}",
        "I believe the camera car is on {}",
        "Most likely this was filmed from a vehicle on {}",
        "We appear to be on {}",
    ),
    Question.OWN_MOTION: (
        "It follows {}",
        "Its way leads along {}",
        "The wheels roll over {}",
    ),
    Question.DESCRIBE: (
        "The image shows {}",
        "The view from the windscreen shows {}",
        "The video presents {}",
        "A camera behind the windscreen shows {}",
    ),
}


class TargetHouse:
    """Answers about what the colour camera sees."""

    def __init__(self, sighting: Sighting) -> None:
        self.sighting = sighting
        assert sighting.ground is not None
        self.ground: Ground = sighting.ground
        # What the eye falls on first colours the wording of the rest.
        first = sighting.groups[0] if sighting.groups else None
        self.focus = (
            f"{first.kind.value} {first.role.value} {first.reach.value}" if first else "nobody"
        )
        self.air = f"{sighting.weather} {sighting.daylight}"
        self.street = f"{self.ground.left} {self.ground.right}"

    def answer(self, question: Question) -> Line:
        """The whole answer to one question."""
        plans: dict[Question, Callable[[], list[Line]]] = {
            Question.KEY_ELEMENTS: lambda: [
                self.items(question, 3), self.nearest(), self.flanks(), self.sky(),
                *([] if len(self.sighting.groups) > 1 else [self.pace()])],
            Question.ELABORATE: lambda: [
                self.items(question, 2), self.course(), self.horizon(), self.edge(), self.sky()],
            Question.ABOUT: lambda: [self.along(question), self.everyone(2), self.pace()],
            Question.ROAD_LAYOUT: lambda: [
                self.course(), self.lanes(), self.edge(), self.flanks(), self.junction()],
            Question.VEHICLES: lambda: [self.vehicles("vehicles"), self.nearest(), self.course()],
            Question.VEHICLE_KINDS: lambda: [self.vehicles("types"), self.pace(), self.lanes()],
            Question.GOING_ON: lambda: [
                self.along(question), self.pace(), self.everyone(2), self.signal()],
            Question.ELEMENTS: lambda: [self.items(question, 3), self.flanks(), self.horizon()],
            Question.HAPPENING: lambda: [self.pace(), self.everyone(3), self.remark()],
            Question.DESCRIBE: lambda: [
                self.along(question), self.flanks(), self.everyone(2), self.sky()],
            Question.TRAFFIC_LIGHT: lambda: [
                self.signal(always=True), self.pace(), self.junction(), self.remark()],
            Question.WEATHER: lambda: [self.sky(), self.comment(), self.remark()],
            Question.SAFE: self.safety,
            Question.MOVING: lambda: [self.movers(), self.pace(), self.signal(), self.course()],
            Question.PEOPLE: lambda: [self.people(), self.pace(), self.edge()],
            Question.OWN_MOTION: lambda: [self.pace(), self.along(question), self.course()],
        }  # fmt: skip
        return told(plans[question](), self.remark())

    def mention(self, group: Group) -> Line:
        """Someone, with colour, number and place."""
        keys = (self.ground.place, group.side)
        noun = noun_of(group, *keys)
        if group.colour is None:
            name = f"{counted(group, _ME, *keys)} {self._size(group)}{noun}"
        elif group.kind in (Kind.PEDESTRIAN, Kind.CYCLIST):
            name = f"a {noun} {pick(('in', 'dressed in'), *keys)} {group.colour.value}"
        else:
            name = f"a {self._size(group)}{group.colour.value} {noun}"
        return Line(f"{name} {role_of(_ME, group, group.side, group.reach)}", group_facts(group))

    def _size(self, group: Group) -> str:
        words = {
            Kind.TRUCK: ("", "large ", "heavy ", "big "),
            Kind.BUS: ("", "large ", "long ", "bulky "),
            Kind.CAR: ("", "", "small ", "compact "),
            Kind.MOTORCYCLE: ("", "", "light ", "nimble "),
        }
        return pick(words.get(group.kind, ("",)), group.kind, group.role, group.reach)

    def road(self) -> Line:
        """The road as a thing."""
        place = state(_ME, "place", "is", self.ground.place.value, self.air)
        lanes = state(_ME, "road", "lanes", str(self.ground.num_lanes))
        adjective = {"2": "two-lane", "4": "four-lane"}[str(self.ground.num_lanes)]
        if pick((True, False), "lanes", self.focus):
            return Line(f"a {adjective} {place.text}", lanes.facts + place.facts)
        return Line(f"a {place.text}", place.facts)

    def items(self, question: Question, num: int) -> Line:
        """The most salient things as a list, the road among them."""
        groups = self.sighting.groups[:num]
        lines = [self.mention(group) for group in groups]
        lines.insert(pick((0, len(lines), len(lines)), "road", self.focus, num), self.road())
        if len(lines) < 3:
            lines.append(Line(pick(_ROADSIDE, self.ground.place, self.sighting.pace)))
        every = listed(lines)
        opening = pick(_OPENINGS[question], question.name, self.ground.place, self.sighting.pace)
        return sentence(Line(opening.format(every.text), every.facts))

    def along(self, question: Question) -> Line:
        """The road, as an opening."""
        road = self.road()
        opening = pick(_OPENINGS[question], question.name, self.ground.place, self.focus)
        weather, time = self._air_words()
        line = Line(opening.format(road.text), road.facts)
        if question is Question.DESCRIBE:
            return sentence(line)
        when = f" on a {weather.text} {time.text}"
        return sentence(line.then(when) + Line("", weather.facts + time.facts))

    def everyone(self, num: int) -> Line:
        """A sentence about who else is on the road."""
        groups = self.sighting.groups[:num]
        if not groups:
            return Line(
                pick(
                    (
                        "There is no other vehicle in sight.",
                        "No other traffic can be made out nearby.",
                        "It looks like an empty road.",
                    ),
                    self.ground.place,
                    self.air,
                ),
                (Fact("vehicles", "are", "none"),),
            )
        every = listed([self.mention(group) for group in groups])
        template = pick(
            (
                "nearby is {}",
                "we can see {}",
                "the camera captures {}",
                "one notices {}",
                "I spot {}",
            ),
            self.focus,
            self.ground.place,
        )
        return sentence(Line(template.format(every.text), every.facts))

    def nearest(self) -> Line:
        """How far the first of them is."""
        if not self.sighting.groups:
            return self.pace()
        group = self.sighting.groups[0]
        distance = state(_ME, "nearest", "distance", group.reach.value, group.kind, self.air)
        noun = noun_of(group, self.ground.place, group.side)
        verb = pick(
            ("is", "appears to be", "seems to be", "looks", "must be"),
            group.kind,
            self.ground.place,
        )
        if group.num > 1:
            verb = _MANY[verb]
        return sentence(Line(f"the {noun} {verb} {distance.text}", distance.facts))

    def flanks(self) -> Line:
        """What lines the road."""
        ground = self.ground
        left = state(_ME, "left side", "is", ground.left.value, ground.right, self.ground.edge)
        right = state(_ME, "right side", "is", ground.right.value, ground.left, self.air)
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
        far = state(_ME, "horizon", "shows", self.ground.landmark.value, self.focus)
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
        """Weather and hour."""
        weather, time = self._air_words()
        template = pick(
            (
                "it appears to be a {} {}",
                "it looks like a {} {}",
                "the picture was taken on a {} {}",
                "everything points to a {} {}",
                "all this takes place on a {} {}",
                "judging by the light, this is a {} {}",
                "the recording dates from a {} {}",
                "we have a {} {} here",
            ),
            self.street,
            self.sighting.pace,
        )
        return sentence(Line(template.format(weather.text, time.text), weather.facts + time.facts))

    def course(self) -> Line:
        """Where the road runs."""
        bend = state(_ME, "road", "bend", self.ground.bend.value, self.ground.place)
        tail = pick(("", " in front of the car", " from here"), self.ground.bend, self.focus)
        return sentence(Line(f"the road {bend.text}{tail}", bend.facts))

    def lanes(self) -> Line:
        """How many lanes, as a sentence."""
        num = str(self.ground.num_lanes)
        words = {"2": "one lane each way", "4": "two lanes each way"}[num]
        verb = pick(("it has", "there is room for", "it offers"), self.ground.place, self.air)
        return sentence(Line(f"{verb} {words}", (Fact("road", "lanes", num),)))

    def edge(self) -> Line:
        """What bounds the carriageway."""
        edge = state(_ME, "road", "edge", self.ground.edge.value, self.focus)
        verb = pick(("it is bordered by", "its edge is marked by", "next to it runs"), self.air)
        return sentence(Line(f"{verb} {edge.text}", edge.facts))

    def junction(self) -> Line:
        """Whether a street crosses."""
        if not self.ground.has_junction:
            return Line("")
        junction = state(_ME, "junction", "is", "ahead", self.air)
        verb = pick(("we are getting to", "there is also", "the road leads to"), self.ground.place)
        return sentence(Line(f"{verb} {junction.text}", junction.facts))

    def pace(self) -> Line:
        """What our own car does."""
        sighting = self.sighting
        pace = state(_ME, "our car", "pace", sighting.pace.value, self.ground.place)
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
            turn = state(_ME, "our car", "turn", sighting.turning.value, self.air)
            line = line.then(",") + Line("and it is") + turn
        return sentence(line)

    def signal(self, always: bool = False) -> Line:
        """The traffic light."""
        lamp = self.sighting.lamp
        if lamp is None:
            facts = (Fact("traffic light", "colour", "none"),)
            words = (
                "There is no traffic light in view that would tell us what to do.",
                "I can see no signal at this point of the road.",
            )
            return Line(pick(words, self.ground.place, self.air), facts) if always else Line("")
        verb = pick(("shows", "is showing", "displays"), self.ground.place, self.air)
        line = Line(
            f"the traffic light on the right {verb} {lamp.value}",
            (Fact("traffic light", "colour", lamp.value),),
        )
        if always:
            meaning = {
                Lamp.RED: "so the line must not be passed",
                Lamp.AMBER: "so it is about to change",
                Lamp.GREEN: "so traffic is allowed to move",
            }
            line = line.then(f", {meaning[lamp]}")
        return sentence(line)

    def vehicles(self, what: str) -> Line:
        """Vehicles only."""
        groups = [group for group in self.sighting.groups if group.kind.is_vehicle][:3]
        if not groups:
            none = state(_ME, "vehicles", "are", "none", self.air)
            return sentence(Line(f"there is {none.text} to be seen around us", none.facts))
        every = listed([self.mention(group) for group in groups])
        templates = {
            "vehicles": ("the vehicles in view are {}", "around us I notice {}", "I can see {}"),
            "types": (
                "the traffic consists of {}",
                "the picture holds {}",
                "as for traffic, I notice {}",
            ),
        }
        template = pick(templates[what], self.ground.place, self.focus)
        return sentence(Line(template.format(every.text), every.facts))

    def people(self) -> Line:
        """People on foot and on bicycles."""
        groups = [group for group in self.sighting.groups if not group.kind.is_vehicle][:3]
        if not groups:
            none = state(_ME, "anyone on foot", "is", "none", self.air)
            return sentence(
                Line(f"{none.text} can be seen here, as far as the picture shows", none.facts)
            )
        every = listed([self.mention(group) for group in groups])
        template = pick(
            ("yes, the camera shows {}", "yes, I can see {}"), self.ground.place, self.air
        )
        return sentence(Line(template.format(every.text), every.facts))

    def movers(self) -> Line:
        """Who moves."""
        groups = [group for group in self.sighting.groups if group.moves][:3]
        if not groups:
            none = Line("apart from ourselves nothing seems to be in motion at this moment")
            return sentence(none)
        every = listed([self.mention(group) for group in groups])
        template = pick(("in motion we find {}", "what moves is {}"), self.focus)
        return sentence(Line(template.format(every.text), every.facts))

    def safety(self) -> list[Line]:
        """Advice and its reason."""
        sighting = self.sighting
        poor = sighting.weather is not Weather.CLEAR
        stop = sighting.lamp in (Lamp.RED, Lamp.AMBER)
        stands = sighting.pace is Pace.STANDING
        value = advice(sighting.groups, stop, poor, stands)
        words = state(_ME, "advice", "is", value, self.ground.place)
        intro = {"wait": "no, we", "care": "yes, we can go on", "go": "yes, we can"}[value]
        if words.text.startswith("not"):
            intro = "no, it would"
        elif words.text.startswith("stay"):
            intro = "yes, but we should"
        elif words.text.startswith("keep the"):
            intro = "no, the driver should"
        parts = [sentence(Line(f"{intro} {words.text}", words.facts))]
        reasons = [
            group
            for group in sighting.groups
            if group.role in (Role.CROSSING, Role.AHEAD, Role.WALKING, Role.WAITING)
        ]
        if stop:
            parts.append(self.signal())
        if reasons:
            mention = self.mention(reasons[0])
            verb = pick(("the reason is", "we must watch", "look out for"), self.focus, self.air)
            parts.append(sentence(Line(f"{verb} {mention.text}", mention.facts)))
        else:
            parts.append(self.everyone(1))
        parts += [self.sky(), self.pace()]
        return parts

    def comment(self) -> Line:
        """A remark about the air; it states nothing new."""
        weather, daylight = self.sighting.weather, self.sighting.daylight
        assert weather is not None
        assert daylight is not None
        return Line(pick(AIR_REMARKS[weather, daylight], self.ground.place))

    def remark(self) -> Line:
        """Something a talkative model adds; it states nothing."""
        return Line(pick(REMARKS[self.ground.place], self.air, self.focus))

    def _air_words(self) -> tuple[Line, Line]:
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
