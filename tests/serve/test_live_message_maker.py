"""What the fuzz of the live protocol calls valid is valid, and covers every field."""

import json
from collections import Counter

from headstart_client.wire import Media
from headstart_server.limits import Limits
from headstart_server.live.messages import Ack, Ask, End, Resume, Start, read_message
from headstart_server.refusal import RefusedError
from tests.soak.live_message_maker import LiveMessageMaker, known_fields

NUM_MADE = 2000


def test_every_field_of_every_message_is_made():
    models = {"start": Start, "resume": Resume, "ask": Ask, "ack": Ack, "end": End}
    assert known_fields() == {kind: model.names for kind, model in models.items()}
    maker, seen = LiveMessageMaker(1), {kind: set() for kind in models}
    for _ in range(NUM_MADE):
        for sent in (maker.start(), maker.resume(None, 0), maker.ask(), maker.ack(7), maker.end()):
            seen[sent.kind] |= set(json.loads(sent.content))
    assert {kind: frozenset(names) for kind, names in seen.items()} == known_fields()


def test_what_is_called_valid_is_accepted():
    maker, limits = LiveMessageMaker(2), Limits()
    for _ in range(NUM_MADE):
        for sent in (maker.start(), maker.resume("t", 3), maker.ask(), maker.ack(7), maker.end()):
            read_message(sent.content, limits)  # raises a refusal if it is not
        read_message(maker.ack_of_the_future(7).content, limits)  # valid at another time
        Media.parse(maker.picture().content)


def test_most_of_what_is_spoiled_is_refused():
    maker, limits, found = LiveMessageMaker(3), Limits(), Counter()
    for _ in range(NUM_MADE):
        try:
            read_message(maker.spoiled(maker.ask()).content, limits)
            found["accepted"] += 1  # an odd value may be a valid one
        except RefusedError:
            found["refused"] += 1
    assert found["refused"] > found["accepted"] > 0


def test_a_seed_makes_the_same_messages_again():
    def made(seed: int) -> list:
        maker = LiveMessageMaker(seed)
        sent = [maker.start(), maker.picture(), maker.odd_picture(), maker.events(), maker.ask()]
        return [*sent, maker.rubbish(), maker.spoiled(maker.ask()), maker.resume("t", 3)]

    assert made(4) == made(4)
    assert made(4) != made(5)
