"""The kinds of question about a clip, each in a few wordings."""

from enum import Enum


class Question(Enum):
    """A kind of question; the value holds its wordings, the usual one first."""

    KEY_ELEMENTS = (
        "Which key elements does this scene contain?",
        "What are the most important things in view?",
        "Name the main elements of what you see.",
    )
    ELABORATE = (
        "Could you go into more detail about what the scene contains?",
        "Tell me more about the things in this scene.",
        "Please expand on what can be seen here.",
    )
    ABOUT = (
        "What is this clip about?",
        "Sum up what the scene is about.",
        "In short, what does this clip show?",
    )
    ROAD_LAYOUT = (
        "How is the road laid out here?",
        "What does the road look like?",
        "Describe the course and the lanes of the road.",
    )
    VEHICLES = (
        "What kind of vehicles can be seen and where are they?",
        "Which vehicles are around us, and in what position?",
        "List the vehicles and where each of them is.",
    )
    VEHICLE_KINDS = (
        "Which types of vehicles appear and how are they placed?",
        "What traffic is there and where does it stand or drive?",
        "Say which vehicle types are present and how they are arranged.",
    )
    GOING_ON = (
        "What do you believe is going on here?",
        "What seems to be taking place?",
        "How would you explain this situation?",
    )
    ELEMENTS = (
        "What is there in this scene?",
        "Which things are present here?",
        "What can be found in the picture?",
    )
    HAPPENING = (
        "What can you see happening?",
        "What is happening right now?",
        "Tell me what happens on the road.",
    )
    DESCRIBE = (
        "Give a description of this scene.",
        "Describe what the camera sees.",
        "Please describe the clip.",
    )
    TRAFFIC_LIGHT = (
        "What does the traffic light show?",
        "Is there a traffic light, and which colour is it?",
        "Which signal do we have?",
    )
    WEATHER = (
        "What are the weather and the time of day?",
        "How is the weather, and how light is it?",
        "Is it day or night, and is it dry?",
    )
    SAFE = (
        "Is it safe to go on?",
        "Can we keep driving?",
        "May the car proceed without danger?",
    )
    MOVING = (
        "What is moving?",
        "Who or what is in motion?",
        "Which movements do you notice?",
    )
    PEOPLE = (
        "Are there people on foot or on bicycles?",
        "Do you see anyone who is not in a vehicle?",
        "Where are the pedestrians and cyclists, if any?",
    )
    OWN_MOTION = (
        "What is our own car doing?",
        "How is the car with the camera moving?",
        "Are we driving, turning or standing?",
    )

    @property
    def usual(self) -> str:
        """The wording used where one is enough."""
        return self.value[0]
