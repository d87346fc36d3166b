"""The rule of memory against the plainest program that follows it."""

from random import Random

import pytest

from headstart.speculation.memory import (
    CONTEXT_LENGTHS,
    MAX_MATCH,
    MAX_PIECES,
    MAX_PLACES,
    StreamMemory,
)


class PlainMemory:
    """Looks through every answer, every time."""

    def __init__(self, max_answers):
        self._max_answers = max_answers
        self._answers = []

    def learn(self, question, answer):
        self._answers = [*self._answers, (question, *answer)][-self._max_answers :]

    def propose(self, question, confirmed, max_tokens):
        said, draft = [question, *confirmed], []
        for _ in range(MAX_PIECES):
            followed = self._best([*said, *draft]) if len(draft) < max_tokens else None
            if followed is None:
                break
            draft += followed[: max_tokens - len(draft)]
        return draft

    def _best(self, said):
        for length in CONTEXT_LENGTHS:
            if length > len(said):
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
                return answer[stop:]
        return None

    def _match(self, answer, stop, said):
        length = 0
        while length < min(stop, len(said), MAX_MATCH):
            if answer[stop - 1 - length] != said[-1 - length]:
                break
            length += 1
        return length


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
            proposed = memory.propose(question, confirmed, limit)
            assert proposed == plain.propose(question, confirmed, limit)
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
        assert memory.propose("q", confirmed, 32) == compacted.propose("q", confirmed, 32)
