"""The phrases that state facts other than those about road users, by value.

Phrases for two values of the same fact never contain each other, so that a text states one of them.
"""

from headstart_lab.language.road_user_phrases import Phrases

SCOPES: dict[str, Phrases] = {
    "left side": ("left", "left-hand", "both sides", "either side"),
    "right side": ("right", "right-hand", "both sides", "either side"),
    "traffic light": ("traffic light", "traffic signal", "signal", "light"),
}
"""The words that a clause must contain to be about a subject."""

_FLANKS: dict[str, Phrases] = {
    "buildings": (
        "tall buildings",
        "apartment blocks",
        "brick facades",
        "shopfronts",
        "house fronts of the town",
    ),
    "houses": ("family houses", "detached homes", "cottages", "bungalows", "low roofs"),
    "trees": ("trees", "a row of trees", "broadleaf trees", "woodland", "leafy crowns"),
    "field": ("open fields", "farmland", "meadows", "ploughed land", "flat ground"),
    "rocks": ("a rock face", "rocky slopes", "bare cliffs", "boulders", "jagged stone"),
    "fence": (
        "a wooden fence",
        "fence posts",
        "a paddock fence",
        "wooden railings",
        "slats of a fence",
    ),
    "hedge": (
        "a hedge",
        "trimmed hedges",
        "dense shrubs",
        "green bushes",
        "a bushy strip",
    ),
    "lamps": ("street lamps", "lamp posts", "lighting columns", "lanterns on poles", "thin masts"),
}

PLAIN: dict[tuple[str, str], dict[str, Phrases]] = {
    ("thing", "colour"): {
        "red": ("red",),
        "blue": ("blue",),
        "white": ("white",),
        "black": ("black",),
        "yellow": ("yellow",),
        "green": ("green",),
    },
    ("left side", "is"): _FLANKS,
    ("right side", "is"): _FLANKS,
    ("traffic light", "colour"): {
        "red": ("red",),
        "amber": ("amber", "yellow"),
        "green": ("green",),
        "none": ("no traffic light", "no signal", "without a traffic light"),
    },
    ("place", "is"): {
        "city": (
            "city street",
            "downtown street",
            "shopping street",
            "built-up street",
            "town canyon",
        ),
        "suburb": (
            "residential street",
            "suburban road",
            "quiet housing estate",
            "side street",
            "neighbourhood lane",
        ),
        "country": (
            "country road",
            "rural road",
            "overland road",
            "lonely route",
            "farm track",
        ),
        "forest": (
            "forest road",
            "woodland road",
            "shady road",
            "woodland route",
            "path among trunks",
        ),
        "mountain": (
            "mountain road",
            "alpine road",
            "upland road",
            "pass road",
            "climbing hillside way",
        ),
        "highway": (
            "highway",
            "motorway",
            "dual carriageway",
            "trunk road",
            "broad carriageway",
        ),
    },
    ("road", "bend"): {
        "straight": (
            "runs straight on",
            "is straight",
            "continues without a bend",
            "leads dead ahead",
            "goes on in a straight line",
        ),
        "left": (
            "bends to the left",
            "curves left",
            "swings leftward",
            "describes a left-hand curve",
            "veers off leftwards",
        ),
        "right": (
            "bends to the right",
            "curves right",
            "swings rightward",
            "describes a right-hand curve",
            "veers off rightwards",
        ),
    },
    ("road", "lanes"): {
        "2": ("one lane each way", "two-lane", "a single lane per direction"),
        "4": ("two lanes each way", "four-lane", "double lanes per direction"),
    },
    ("road", "edge"): {
        "kerb": ("kerbstones", "a raised kerb", "a pavement edge", "a stone kerb", "stepped edges"),
        "guard rail": (
            "a guard rail",
            "a crash barrier",
            "a metal railing",
            "a steel safety fence",
            "a long rail",
        ),
        "verge": (
            "a grass verge",
            "grassy shoulders",
            "a strip of lawn",
            "an unpaved shoulder",
            "soft margins",
        ),
    },
    ("junction", "is"): {
        "ahead": (
            "a junction",
            "an intersection",
            "a crossroads",
            "the mouth of another street",
            "a crossing street opening up",
        ),
    },
    ("horizon", "shows"): {
        "hills": (
            "rolling hills",
            "a line of hills",
            "green uplands",
            "gentle heights",
            "rounded ridges",
        ),
        "mountains": (
            "snowy mountains",
            "high peaks",
            "white summits",
            "an alpine panorama",
            "steep ridges",
        ),
        "towers": (
            "high-rise towers",
            "a city skyline",
            "skyscrapers",
            "office towers",
            "tall upright blocks",
        ),
        "church": (
            "a church tower",
            "a pointed steeple",
            "the steeple of a church",
            "a belfry",
            "a spire",
        ),
        "turbines": (
            "wind turbines",
            "windmills",
            "a wind farm",
            "white rotors",
            "spinning blades",
        ),
        "lake": (
            "a lake",
            "a sheet of water",
            "lake water",
            "a broad bay",
            "a flat shoreline",
        ),
    },
    ("weather", "is"): {
        "clear": ("clear", "dry", "cloudless"),
        "rain": ("rain", "rainy", "showery", "drizzly", "raining", "falling drops"),
        "fog": ("fog", "foggy", "misty", "hazy"),
    },
    ("time", "is"): {
        "day": ("day", "daytime", "daylight"),
        "dusk": ("dusk", "evening", "twilight"),
        "night": ("night", "night-time", "after dark"),
    },
    ("our car", "pace"): {
        "standing": (
            "standing still",
            "at a standstill",
            "has stopped",
            "has come to rest",
            "nothing shifts the viewpoint",
        ),
        "slow": (
            "slowly",
            "at low speed",
            "gently",
            "hesitantly",
            "crawls",
        ),
        "moderate": (
            "at a moderate speed",
            "at a steady pace",
            "at an ordinary speed",
            "without hurry",
            "flows evenly",
        ),
        "fast": ("at high speed", "fast", "rapidly", "at a brisk tempo", "streams past"),
    },
    ("our car", "turn"): {
        "left": ("turning left", "swinging round to the left", "pans leftwards"),
        "right": ("turning right", "swinging round to the right", "pans rightwards"),
    },
    ("nearest", "distance"): {
        "near": (
            "only a few metres away",
            "very close",
            "almost within reach",
            "right before the bonnet",
            "filling much of the view",
        ),
        "middle": (
            "a few car lengths away",
            "at a medium distance",
            "neither near nor far",
            "at a comfortable gap",
            "of middling size",
        ),
        "far": (
            "further down the road",
            "some way off",
            "a good stretch away",
            "rather remote",
            "still small",
        ),
    },
    ("advice", "is"): {
        "wait": ("have to wait", "not be safe to move", "keep the brakes on", "hold back"),
        "care": ("with care", "cautiously", "stay alert", "mind the nearby motion"),
        "go": ("carry on", "keep going", "proceed freely", "the way is open"),
    },
    ("anyone on foot", "is"): {
        "none": ("nobody on foot", "no person outside a vehicle", "no walking outline"),
    },
    ("vehicles", "are"): {
        "none": ("no other vehicle", "no other traffic", "an empty road", "no vehicle outline"),
    },
}
"""By subject and attribute, then by value. The last phrase is the drafter's."""
