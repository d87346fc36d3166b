"""The rule of memory against the plainest program that follows it."""

from random import Random

import pytest

from headstart.drafters.stream_memory import (
    CONTEXT_LENGTHS,
    MAX_MATCH,
    MAX_PIECES,
    MAX_PLACES,
    StreamMemory,
    quote,
)


class PlainMemory:
    """Looks through every answer, every time."""

    def __init__(self, max_answers):
        self._max_answers = max_answers
        self._answers = []

    def learn(self, question, answer):
        self._answers = [*self._answers, (question, *answer)][-self._max_answers :]

    def best(self, said, longer_than=0):
        """How long the best match is, and what followed it."""
        for length in CONTEXT_LENGTHS:
            if not longer_than < length <= len(said):
                continue
            places = [
                (answer, stop)
                for answer in self._answers
                for stop in range(length, len(answer))
                if list(answer[stop - length : stop]) == said[-length:]
            ]
            if places:
                latest_first = places[-MAX_PLACES:][::-1]
                answer, stop = max(latest_first, key=lambda place: self._match(*place, said))
                return self._match(answer, stop, said), answer[stop:]
        return None

    def _match(self, answer, stop, said):
        length = 0
        while length < min(stop, len(said), MAX_MATCH):
            if answer[stop - 1 - length] != said[-1 - length]:
                break
            length += 1
        return length


def plain_quote(memories, question, confirmed, max_tokens):
    """The draft, and how long the match was that it begins after."""
    said, draft, first_match = [question, *confirmed], [], 0
    for _ in range(MAX_PIECES):
        longest, followed = 0, None
        for memory in memories:
            found = memory.best([*said, *draft], longest)
            if found is not None:
                longest, followed = found
        if followed is None or len(draft) >= max_tokens:
            break
        first_match = first_match or longest
        draft += followed[: max_tokens - len(draft)]
    return draft, first_match


def variations(rng, answers):
    """A camera's answers: the last one, with a few words changed, left out or put in."""
    answer = list(answers[-1]) if answers else rng.choices(range(30_000), k=40)
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(answer) + 1)
        answer[place : place + rng.randrange(3)] = rng.choices(range(30_000), k=rng.randrange(3))
    return answer or [1]


STREAMS = {
    "two words": lambda rng, _: rng.choices(range(2), k=rng.randrange(1, 30)),
    "few words": lambda rng, _: rng.choices(range(6), k=rng.randrange(1, 40)),
    "many words": lambda rng, _: rng.choices(range(32_000), k=rng.randrange(1, 60)),
    "one word": lambda rng, _: [7] * rng.randrange(1, 50),
    "a camera": variations,
}


@pytest.mark.parametrize("max_answers", [1, 3, 20, 1000])
@pytest.mark.parametrize("kind", STREAMS)
def test_every_proposal_is_the_plain_ones(kind, max_answers):
    rng = Random(f"{kind} {max_answers}")
    memory, plain = StreamMemory(max_answers), PlainMemory(max_answers)
    answers, num_drafted = [], 0
    for _ in range(60):
        answer = STREAMS[kind](rng, answers)
        question = rng.choice(("who?", "where?"))
        for _ in range(4):
            at = rng.randrange(len(answer) + 1)
            confirmed = answer[:at] if rng.random() < 0.7 else rng.choices(answer, k=at)
            limit = rng.choice((0, 1, 5, 64))
            proposed = quote((memory,), question, confirmed, limit)
            expected = plain_quote((plain,), question, confirmed, limit)
            assert (proposed, proposed.match) == expected
            num_drafted += len(proposed)
        memory.learn(question, answer)
        plain.learn(question, answer)
        answers.append(answer)
        assert len(memory) == min(len(answers), max_answers)
    assert num_drafted > 0


def test_what_was_compacted_proposes_the_same():
    rng = Random(5)
    memory, compacted = StreamMemory(40), StreamMemory(40)
    for _ in range(200):
        answer = rng.choices(range(9), k=rng.randrange(1, 30))
        memory.learn("q", answer)
        compacted.learn("q", answer)
        if rng.random() < 0.3:
            compacted.compact()
        confirmed = rng.choices(range(9), k=rng.randrange(20))
        expected = quote((memory,), "q", confirmed, 32)
        assert quote((compacted,), "q", confirmed, 32) == expected


@pytest.mark.parametrize("kind", STREAMS)
def test_two_memories_propose_what_two_plain_ones_do(kind):
    rng = Random(f"two of {kind}")
    memories, plain = (StreamMemory(4), StreamMemory(40)), (PlainMemory(4), PlainMemory(40))
    answers, num_alone = [], 0
    for _ in range(80):
        answer = STREAMS[kind](rng, answers)
        confirmed = answer[: rng.randrange(len(answer) + 1)]
        proposed = quote(memories, "q", confirmed, 16)
        assert (proposed, proposed.match) == plain_quote(plain, "q", confirmed, 16)
        num_alone += proposed == quote(memories[:1], "q", confirmed, 16)
        taught = rng.random() < 0.2
        for memory in (*memories[not taught :], *plain[not taught :]):
            memory.learn("q", answer)
        answers.append(answer)
    if kind in ("few words", "a camera"):
        assert 0 < num_alone < 80
