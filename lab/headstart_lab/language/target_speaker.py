"""The target's answers: full sentences with colours, hedges, surroundings and light."""

from collections.abc import Callable

from headstart_lab.language.facts import Fact
from headstart_lab.language.openings import OPENINGS, ROADSIDE
from headstart_lab.language.questions import Question
from headstart_lab.language.sighting import Group
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
from headstart_lab.language.street_sentences import StreetSentences
from headstart_lab.world.kinds import Kind, Lamp, Pace, Role, Weather

_OURS = Phrasing.TARGET

_MANY = {
    "is": "are", "appears to be": "appear to be", "seems to be": "seem to be",
    "must be": "must be",
}  # fmt: skip


class TargetSpeaker(StreetSentences):
    """Answers about what the colour camera sees."""

    def answer(self, question: Question) -> Line:
        """The whole answer to one question."""
        plans: dict[Question, Callable[[], list[Line]]] = {
            Question.KEY_ELEMENTS: lambda: [
                self.items(question, 3), self.nearest(), self.flanks(), self.sky(),
                *([] if len(self.sighting.groups) > 2 else [self.pace()])],
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
        """A group of road users, with colour, number and place."""
        keys = (self.ground.place, group.side)
        noun = noun_of(group, *keys)
        if group.colour is None:
            name = f"{counted(group, _OURS, *keys)} {self._size(group)}{noun}"
        elif group.kind in (Kind.PEDESTRIAN, Kind.CYCLIST):
            name = f"a {noun} {pick(('in', 'dressed in'), *keys)} {group.colour.value}"
        else:
            name = f"a {self._size(group)}{group.colour.value} {noun}"
        return Line(f"{name} {role_of(_OURS, group, group.side, group.reach)}", group_facts(group))

    def _size(self, group: Group) -> str:
        words = {
            Kind.TRUCK: ("", "large ", "heavy ", "big "),
            Kind.BUS: ("", "large ", "long ", "bulky "),
            Kind.CAR: ("", "", "small ", "compact "),
            Kind.MOTORCYCLE: ("", "", "light ", "nimble "),
        }
        return pick(words.get(group.kind, ("",)), group.kind, group.role, group.reach)

    def items(self, question: Question, num: int) -> Line:
        """The most salient things as a list, the road among them."""
        # A traffic light replaces the least salient of them.
        num -= self.sighting.lamp is not None
        lines = [self.mention(group) for group in self.sighting.groups[:num]]
        if self.sighting.lamp is not None:
            lamp = self.sighting.lamp.value
            shining = pick(("showing", "that shines", "set to"), self.ground.place, lamp)
            fact = Fact("traffic light", "colour", lamp)
            lines.insert(min(1, len(lines)), Line(f"a traffic light {shining} {lamp}", (fact,)))
        lines.insert(pick((0, len(lines), len(lines)), "road", self.focus, num), self.road())
        if len(lines) < 3:
            lines.append(Line(pick(ROADSIDE, self.ground.place, self.sighting.pace)))
        every = listed(lines)
        opening = pick(OPENINGS[question], question.name, self.ground.place, self.sighting.pace)
        return sentence(Line(opening.format(every.text), every.facts))

    def along(self, question: Question) -> Line:
        """The road, as an opening."""
        road = self.road()
        opening = pick(OPENINGS[question], question.name, self.ground.place, self.focus)
        weather, time = self.air_words()
        line = Line(opening.format(road.text), road.facts)
        if question is Question.DESCRIBE:
            return sentence(line)
        when = f" on a {weather.text} {time.text}"
        return sentence(line.then(when) + Line("", weather.facts + time.facts))

    def everyone(self, num: int) -> Line:
        """A sentence about the other road users."""
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
        """The distance of the most salient group."""
        if not self.sighting.groups:
            return self.course()
        group = self.sighting.groups[0]
        distance = state(_OURS, "nearest", "distance", group.reach.value, group.kind, self.air)
        noun = noun_of(group, self.ground.place, group.side)
        verb = pick(
            ("is", "appears to be", "seems to be", "must be"),
            group.kind,
            self.ground.place,
        )
        if group.num > 1:
            verb = _MANY[verb]
        return sentence(Line(f"the {noun} {verb} {distance.text}", distance.facts))

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
        """The vehicles."""
        groups = [group for group in self.sighting.groups if group.kind.is_vehicle][:3]
        if not groups:
            none = state(_OURS, "vehicles", "are", "none", self.air)
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
            none = state(_OURS, "anyone on foot", "is", "none", self.air)
            return sentence(
                Line(f"{none.text} can be seen here, as far as the picture shows", none.facts)
            )
        every = listed([self.mention(group) for group in groups])
        template = pick(
            ("yes, the camera shows {}", "yes, I can see {}"), self.ground.place, self.air
        )
        return sentence(Line(template.format(every.text), every.facts))

    def movers(self) -> Line:
        """The road users that move."""
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
        words = state(_OURS, "advice", "is", value, self.ground.place)
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
