"""The phrases for road users: what they are, how many, and what they do where."""

Phrases = tuple[str, ...]

NOUNS: dict[str, Phrases] = {
    "car": ("car", "cars", "sedan", "sedans", "passenger car"),
    "truck": ("truck", "trucks", "lorry", "lorries"),
    "bus": ("bus", "buses", "coach", "coaches"),
    "motorcycle": ("motorcycle", "motorcycles", "motorbike", "motorbikes"),
    "cyclist": ("cyclist", "cyclists", "bicycle rider", "bicycle riders"),
    "pedestrian": ("pedestrian", "pedestrians", "person", "people", "walker", "walkers"),
}
"""Singular and plural of the usual word, then of another one."""

NUMBERS: dict[str, Phrases] = {
    "2": ("two", "a pair of", "a couple of"),
    "3": ("three", "a trio of"),
    "several": ("several", "a number of"),
}

ROLES: dict[str, tuple[Phrases, Phrases]] = {
    "ahead": (
        (
            "in front of us",
            "directly ahead",
            "leading the way",
            "which we follow",
        ),
        ("holding the middle of the view", "keeping to our track", "in the same lane up front"),
    ),
    "ahead right": (
        (
            "at the right edge of the road",
            "pedalling along the right",
            "keeping to the right margin",
        ),
        ("pedalling at the rim to our right", "travelling by the right border line"),
    ),
    "beside left": (
        (
            "in the lane to our left",
            "in the left lane",
            "abreast on the left",
        ),
        ("sliding along our left flank", "abreast of us to the left"),
    ),
    "beside right": (
        (
            "in the lane to our right",
            "in the right lane",
            "abreast on the right",
        ),
        ("sliding along our right flank", "abreast of us to the right"),
    ),
    "oncoming": (
        (
            "coming towards us",
            "approaching us",
            "heading the other way",
            "about to meet us",
        ),
        ("growing on the far lane", "nearing from the opposite way", "rushing against our course"),
    ),
    "parked left": (
        ("parked on the left", "parked along the left side", "put down at the left kerb"),
        ("resting at the left border", "drifting by at rest to the left"),
    ),
    "parked right": (
        ("parked on the right", "parked along the right side", "put down at the right kerb"),
        ("resting at the right border", "drifting by at rest to the right"),
    ),
    "crossing from left": (
        (
            "crossing from the left",
            "crossing left to right",
            "passing before us towards the right",
        ),
        ("cutting through the view rightwards", "moving sideways towards the right"),
    ),
    "crossing from right": (
        (
            "crossing from the right",
            "crossing right to left",
            "passing before us towards the left",
        ),
        ("cutting through the view leftwards", "moving sideways towards the left"),
    ),
    "waiting left": (
        ("waiting on the left", "standing at the left roadside", "lingering on the left pavement"),
        ("staying put at the left", "upright at rest to the left"),
    ),
    "waiting right": (
        (
            "waiting on the right",
            "standing at the right roadside",
            "lingering on the right pavement",
        ),
        ("staying put at the right", "upright at rest to the right"),
    ),
    "walking left": (
        ("walking on the left", "walking along the left pavement", "going on foot along the left"),
        ("striding at the left", "stepping along to the left"),
    ),
    "walking right": (
        (
            "walking on the right",
            "walking along the right pavement",
            "going on foot along the right",
        ),
        ("striding at the right", "stepping along to the right"),
    ),
}
"""By subject: the target's phrases, then the drafter's; none contains one of another subject."""
