"""Remarks about places, weather and light that state no fact."""

from headstart_lab.world.kinds import Daylight, Place, Weather

REMARKS: dict[Place, tuple[str, ...]] = {
    Place.CITY: (
        "The facades rise like a corridor around the traffic.",
        "Everything suggests a busy quarter where drivers need patience.",
        "Shop windows and doorways give the place a lively character.",
        "Such crowded surroundings demand a driver's full attention.",
        "Delivery vans, taxis and scooters usually compete for space in such quarters.",
        "Reflections in the glass make the avenue appear wider than it is.",
        "Noise, haste and narrow gaps are part of everyday life downtown.",
    ),
    Place.SUBURB: (
        "The neighbourhood makes a peaceful and well-kept impression.",
        "Families probably live here, so children might play nearby.",
        "Gardens and driveways suggest a settled community.",
        "The atmosphere is calm and rather ordinary.",
        "Mailboxes, porches and tidy lawns hint at an established district.",
        "School runs and dog owners are typical of such addresses.",
        "Nothing extraordinary happens, and that is precisely its charm.",
    ),
    Place.COUNTRY: (
        "The landscape feels wide and quiet.",
        "Villages must be scattered somewhere beyond these meadows.",
        "Nature dominates the view and there is little to distract.",
        "A journey like this can be quite relaxing.",
        "Crops, pastures and occasional barns shape this agricultural region.",
        "Tractors may emerge from unpaved tracks without much warning.",
        "Birds of prey often circle above similar plains.",
    ),
    Place.FOREST: (
        "The vegetation makes the surroundings feel enclosed.",
        "Animals could step out at any moment in such an area.",
        "Branches reach over the shoulder and throw patterns onto the ground.",
        "It is a secluded and rather silent environment.",
        "Moss, ferns and fallen twigs cover whatever lies between the trunks.",
        "Deer crossings are a familiar hazard under such a canopy.",
        "Sunbeams would hardly penetrate the dense foliage.",
    ),
    Place.MOUNTAIN: (
        "The terrain is rugged and asks for skilful steering.",
        "Drops and boulders next to the tarmac make the route demanding.",
        "The altitude gives the scenery a dramatic touch.",
        "Hairpins are to be expected along such a route.",
        "Gravel, loose stones and sudden gusts require constant concentration.",
        "Engine braking would spare the pads on steeper sections.",
        "Hikers and cable cars are probably not far from this valley.",
    ),
    Place.HIGHWAY: (
        "Long distances are covered here without interruption.",
        "The infrastructure is built for heavy through traffic.",
        "Exits and service areas may follow within a few kilometres.",
        "Monotony is perhaps the greatest danger on such a stretch.",
        "Commuters, freight carriers and holidaymakers share the same asphalt ribbon.",
        "Overhead gantries usually announce diversions well in advance.",
        "Cruise control comes in handy for these endless kilometres.",
    ),
}

AIR_REMARKS: dict[tuple[Weather, Daylight], tuple[str, ...]] = {
    (Weather.CLEAR, Daylight.DAY): (
        "Shadows are crisp and visibility is excellent.",
        "Sunshine lets every contour appear sharp.",
        "Conditions could hardly be better for the lens.",
    ),
    (Weather.CLEAR, Daylight.DUSK): (
        "A warm glow tints the whole picture orange.",
        "The sun must have set only minutes ago.",
        "Contrast is fading, though outlines remain legible.",
    ),
    (Weather.CLEAR, Daylight.NIGHT): (
        "Only lamps and headlights brighten the surroundings.",
        "Beyond the beam almost everything sinks into blackness.",
        "The sensor struggles and produces visible grain.",
    ),
    (Weather.RAIN, Daylight.DAY): (
        "Drops streak across the glass and the tarmac glistens.",
        "Braking distances grow on such slippery ground.",
        "Wipers are surely at work behind the lens.",
    ),
    (Weather.RAIN, Daylight.DUSK): (
        "Puddles mirror the last glimmer of the sky.",
        "Water and fading brightness make an awkward combination.",
        "Spray blurs the contours of everything remote.",
    ),
    (Weather.RAIN, Daylight.NIGHT): (
        "Reflections dance on the soaked surface.",
        "Glare and water leave very little to recognise.",
        "Hardly anyone would enjoy driving under such circumstances.",
    ),
    (Weather.FOG, Daylight.DAY): (
        "A pale veil swallows everything remote.",
        "Visibility ends after a few dozen metres.",
        "The haze washes out most of the contrast.",
    ),
    (Weather.FOG, Daylight.DUSK): (
        "The haze takes on a brownish tone.",
        "Objects emerge late from the murky background.",
        "Fog lamps would be a sensible choice.",
    ),
    (Weather.FOG, Daylight.NIGHT): (
        "The beam ends in a wall of grey.",
        "Lamps turn into blurred halos.",
        "Orientation becomes a matter of instinct.",
    ),
}
