"""How the target begins an answer; the road or a list of things goes into the braces."""

from headstart_lab.language.questions import Question

ROADSIDE = (
    "the lane markings",
    "the grey asphalt",
    "the roadside",
    "not much else",
    "a stretch of tarmac",
)

OPENINGS: dict[Question, tuple[str, ...]] = {
    Question.KEY_ELEMENTS: (
        "The main elements here are {}",
        "Most important are {}",
        "What stands out is {}",
        "The scene consists of {}",
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
