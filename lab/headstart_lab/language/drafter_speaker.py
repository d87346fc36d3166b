"""The drafter's answers: motion first, outlines instead of colours, few words."""

from collections.abc import Callable

from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.sighting import Group, Sighting
from headstart_lab.language.speech import (
    Line,
    Phrasing,
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
from headstart_lab.world.kinds import Landmark, Pace, Turning

_OURS = Phrasing.DRAFTER


class DrafterSpeaker:
    """Answers about what the event camera sees."""

    def __init__(self, sighting: Sighting) -> None:
        self.sighting = sighting
        first = sighting.groups[0] if sighting.groups else None
        self.focus = f"{first.kind.value} {first.role.value}" if first else "nobody"
        self.place = sighting.ground.place.value if sighting.ground else "unknown"

    def answer(self, question: Question) -> Line:
        """The whole answer to one question."""
        plans: dict[Question, Callable[[], list[Line]]] = {
            Question.KEY_ELEMENTS: lambda: [
                self.pace(), self.everyone(3), self.ground(), self.sides(), self.drops()],
            Question.ELABORATE: lambda: [self.everyone(2), self.course(), self.sides(), self.far()],
            Question.ABOUT: lambda: [self.ground(), self.pace(), self.everyone(2)],
            Question.ROAD_LAYOUT: lambda: [self.course(), self.lanes(), self.sides()],
            Question.VEHICLES: lambda: [self.vehicles(), self.size(), self.pace()],
            Question.VEHICLE_KINDS: lambda: [self.vehicles(), self.pace(), self.lanes()],
            Question.GOING_ON: lambda: [self.pace(), self.ground(), self.everyone(2)],
            Question.ELEMENTS: lambda: [self.everyone(4), self.sides(), self.far()],
            Question.HAPPENING: lambda: [
                self.everyone(3), self.pace(), self.course(), self.drops()],
            Question.DESCRIBE: lambda: [self.pace(), self.course(), self.sides(), self.everyone(2)],
            Question.TRAFFIC_LIGHT: lambda: [
                Line("Lamps leave no colour in these events, hence their state stays unknown."),
                self.pace()],
            Question.WEATHER: lambda: [self.drops(always=True), self.pace(), self.ground()],
            Question.SAFE: lambda: [self.safety(), self.everyone(2)],
            Question.MOVING: lambda: [self.movers(), self.pace(), self.size()],
            Question.PEOPLE: lambda: [self.people(), self.pace(), self.ground()],
            Question.OWN_MOTION: lambda: [self.pace(), self.course(), self.ground(), self.sides()],
        }  # fmt: skip
        return told(plans[question](), *self.fillers())

    def mention(self, group: Group) -> Line:
        """A group of road users, by outline and motion."""
        number = counted(group, _OURS)
        noun = noun_of(group, self.place)
        shape = pick(("shape", "outline", "contour"), group.kind, group.role)
        name = f"{number} {noun} {shape}" if group.num == 1 else f"{number} {noun}"
        return Line(f"{name} {role_of(_OURS, group, self.place)}", group_facts(group))

    def everyone(self, num: int) -> Line:
        """The most salient road users."""
        groups = self.sighting.groups[:num]
        if not groups:
            return Line(
                "Events give no vehicle outline at present.", (Fact("vehicles", "are", "none"),)
            )
        every = listed([self.mention(group) for group in groups])
        template = pick(
            ("strong edges trace {}", "events reveal {}", "motion gives away {}"), self.focus
        )
        return sentence(Line(template.format(every.text), every.facts))

    def vehicles(self) -> Line:
        """The vehicles."""
        groups = [group for group in self.sighting.groups if group.kind.is_vehicle][:3]
        if not groups:
            return Line(
                "Edges form no vehicle outline anywhere.", (Fact("vehicles", "are", "none"),)
            )
        every = listed([self.mention(group) for group in groups])
        return sentence(Line(f"edges form {every.text}", every.facts))

    def people(self) -> Line:
        """People on foot and on bicycles."""
        groups = [group for group in self.sighting.groups if not group.kind.is_vehicle][:3]
        if not groups:
            return Line(
                "Events hold no walking outline, neither left nor right of our track.",
                (Fact("anyone on foot", "is", "none"),),
            )
        every = listed([self.mention(group) for group in groups])
        return sentence(Line(f"moving bodies form {every.text}", every.facts))

    def movers(self) -> Line:
        """The road users that move by themselves."""
        groups = [group for group in self.sighting.groups if group.moves][:3]
        if not groups:
            return Line("Nothing but our own motion leaves a trace in this window.")
        every = listed([self.mention(group) for group in groups])
        return sentence(Line(f"moving contours belong to {every.text}", every.facts))

    def ground(self) -> Line:
        """The kind of road, if the car's motion shows it."""
        ground = self.sighting.ground
        if ground is None:
            return Line("Everything at rest stays invisible.")
        place = state(_OURS, "place", "is", ground.place.value)
        template = pick(("passing edges suggest a {}", "flow lines fit a {}"), self.focus)
        return sentence(Line(template.format(place.text), place.facts))

    def course(self) -> Line:
        """The bend of the road."""
        ground = self.sighting.ground
        if ground is None:
            return Line("No road edges are visible because nothing shifts.")
        bend = state(_OURS, "road", "bend", ground.bend.value)
        return sentence(Line(f"our track {bend.text}", bend.facts))

    def lanes(self) -> Line:
        """How many lanes."""
        ground = self.sighting.ground
        if ground is None:
            return Line("Lane marks will appear once we roll again.")
        lanes = state(_OURS, "road", "lanes", str(ground.num_lanes))
        edge = state(_OURS, "road", "edge", ground.edge.value)
        return sentence(
            Line(f"marks divide {lanes.text}, bounded by {edge.text}", lanes.facts + edge.facts)
        )

    def sides(self) -> Line:
        """What stands on both sides of the road."""
        ground = self.sighting.ground
        if ground is None:
            return Line("Neither roadside produces any edges.")
        left = state(_OURS, "left side", "is", ground.left.value)
        right = state(_OURS, "right side", "is", ground.right.value)
        facts = (*left.facts, *right.facts)
        if ground.left is ground.right:
            return sentence(Line(f"either side carries {left.text}", facts))
        return sentence(Line(f"left carries {left.text}, right carries {right.text}", facts))

    def far(self) -> Line:
        """What stands far away."""
        ground = self.sighting.ground
        if ground is None or ground.landmark is Landmark.NOTHING:
            return Line("")
        far = state(_OURS, "horizon", "shows", ground.landmark.value)
        return sentence(Line(f"faint edges beyond outline {far.text}", far.facts))

    def drops(self, always: bool = False) -> Line:
        """Rain, which moves and so is seen."""
        if self.sighting.weather is not None:
            rain = state(_OURS, "weather", "is", self.sighting.weather.value)
            return sentence(Line(f"vertical streaks come from {rain.text}", rain.facts))
        return (
            Line("Events carry no streaks, and brightness stays unknown.") if always else Line("")
        )

    def size(self) -> Line:
        """The distance of the most salient group."""
        if not self.sighting.groups:
            return Line("")
        reach = state(_OURS, "nearest", "distance", self.sighting.groups[0].reach.value)
        return sentence(Line(f"its strongest contour looks {reach.text}", reach.facts))

    def pace(self) -> Line:
        """The car's own motion."""
        pace = state(_OURS, "our car", "pace", self.sighting.pace.value)
        if self.sighting.pace is Pace.STANDING:
            return sentence(pace)
        line = Line(f"scenery {pace.text}", pace.facts)
        if self.sighting.turning is not Turning.NONE:
            turn = state(_OURS, "our car", "turn", self.sighting.turning.value)
            line = line.then(",") + Line("while our view") + turn
        return sentence(line)

    def fillers(self) -> list[Line]:
        """Sentences that state no fact, for answers that are too short."""
        first = pick(
            (
                "Apart from that, only scattered noise fills this brief window.",
                "Beyond those edges, hardly any pixel fires during these milliseconds.",
                "Otherwise polarity flickers at random, without forming further structure.",
            ),
            self.focus,
            self.place,
        )
        return [Line(first), Line("Static texture would need some shaking to become apparent.")]

    def safety(self) -> Line:
        """Advice from motion alone."""
        stands = self.sighting.pace is Pace.STANDING
        rain = self.sighting.weather is not None
        value = advice(self.sighting.groups, False, rain, stands)
        words = state(_OURS, "advice", "is", value)
        intro = {"wait": "better", "care": "go on but", "go": "as far as motion tells,"}[value]
        return sentence(Line(f"{intro} {words.text}", words.facts))
