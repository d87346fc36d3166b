"""Asks bare vLLM and vLLM with drafts the same, and says where they part."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from tests.engine.promise_cells import MAX_TOKENS, Cell, Setup
from tests.engine.promise_engine import Ask, Counts, Said, Speaker, engine_arguments
from tests.engine.promise_model import NUM_TEXT_IDS, THINKING_BEGINS

Answer = tuple[int, ...]
Draft = Callable[[Answer, Answer, Random], Sequence[int]]
"""From an answer, and the answer to another question of the same kind."""


def _partly_wrong(answer: Answer, other: Answer, chance: Random) -> Sequence[int]:
    return [chance.randrange(3, NUM_TEXT_IDS) if chance.random() < 0.2 else t for t in answer]


DRAFTS: Mapping[str, Draft] = {
    "right": lambda answer, other, chance: answer,
    "all but the end": lambda answer, other, chance: answer[:-1],
    "short": lambda answer, other, chance: answer[:3],
    "partly wrong": _partly_wrong,
    # Wrong, but often what the same grammar would let pass.
    "another's end": lambda answer, other, chance: (*answer[:4], *other[4:]),
}
MEMORY = "memory"
NUM_ANSWERS_A_PROMPT = len(DRAFTS) + 2  # memory has to hear an answer before it drafts one

TOGETHER = Cell("all of these in one batch", lambda tokens, text, chance: {})
BESIDE = Cell(
    "all of these, after what keeps drafts back", lambda tokens, text, chance: {}, words_only=True
)
QUESTIONS_A_NEIGHBOUR = 3

Start = Callable[[Mapping[str, Any]], Speaker]
"""Starts an engine with these arguments of vLLM's."""


@dataclass(frozen=True)
class Question:
    """A request, bare vLLM's answer to it, and both again without the request's settings."""

    ask: Ask
    bare: Said
    plain: Ask
    free: Said


@dataclass(frozen=True)
class Batch:
    """What is asked at once: drafted questions, and between them requests of people without drafts.

    The first of all is such a neighbour, and has no settings at all.
    """

    asks: tuple[Ask, ...]
    bare: tuple[Said, ...]
    questions: tuple[int | None, ...]
    """Which question each of them is; none where it is a neighbour."""

    @classmethod
    def of(cls, questions: Sequence[Question]) -> Self:
        """A neighbour without settings, three questions, one with settings, three questions."""
        rows: list[tuple[Ask, Said, int | None]] = []
        for place, one in enumerate(questions):
            if place % (2 * QUESTIONS_A_NEIGHBOUR) == 0:
                rows.append((one.plain, one.free, None))
            elif place % QUESTIONS_A_NEIGHBOUR == 0:
                rows.append((one.ask, one.bare, None))
            rows.append((one.ask, one.bare, place))
        return cls(*zip(*rows, strict=True))

    def hints(self, of_questions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        """What headstart is told with each: nothing of a neighbour's."""
        return [None if place is None else of_questions[place] for place in self.questions]


@dataclass(frozen=True)
class Result:
    """One cell: how much was compared, and what is wrong with it, if anything."""

    setup: str
    cell: str
    answers: int
    drafted: int
    accepted: int
    remembered: int
    """Tokens of memory's drafts that were accepted."""
    preemptions: int
    changed: int
    """Prompts to which the settings make bare vLLM say something else."""
    differences: int
    withheld: str
    problem: str


def run_setup(setup: Setup, start: Start, num_prompts: int) -> Iterator[Result]:
    """Every cell of one setup, on two engines that are up one after the other."""
    engine = start(engine_arguments(setup.engine, drafting=False))
    try:
        questions = {cell: _questions(engine, setup, cell, num_prompts) for cell in setup.cells}
    finally:
        engine.close()
    engine = start(engine_arguments(setup.engine, drafting=True))
    try:
        for cell, asked in questions.items():
            yield _compare(engine, setup, cell, asked)
        drafted = _mixed(questions, num_prompts)
        if sum(not cell.withheld for cell in setup.cells) > 1:
            yield _compare(engine, setup, TOGETHER, drafted)
        if kept_back := [asked[0] for cell, asked in questions.items() if cell.withheld]:
            yield _compare(engine, setup, BESIDE, [*kept_back, *drafted])
    finally:
        engine.close()


def _mixed(questions: Mapping[Cell, list[Question]], num_prompts: int) -> list[Question]:
    drafted = [one for cell, asked in questions.items() if not cell.withheld for one in asked]
    return Random(0).sample(drafted, min(len(drafted), 2 * num_prompts))


def _questions(engine: Speaker, setup: Setup, cell: Cell, num_prompts: int) -> list[Question]:
    chance = Random(f"{setup.name} {cell.name}")
    lengths = [cell.lengths[place % len(cell.lengths)] for place in range(num_prompts)]
    prompts = [tuple(chance.choices(range(3, NUM_TEXT_IDS), k=length)) for length in lengths]
    if cell.thinks:
        prompts = [(*prompt[:-1], THINKING_BEGINS) for prompt in prompts]
    plain = [Ask(prompt, {"max_tokens": MAX_TOKENS}) for prompt in prompts]
    free = engine.say(plain, [None] * len(plain))
    asks = [
        Ask(
            prompt,
            {"max_tokens": MAX_TOKENS, **cell.settings(said.token_ids[0], said.texts[0], chance)},
            adapter=cell.adapter and place % 2 == 0,
            priority=chance.randrange(4) if cell.priorities else 0,
        )
        for place, (prompt, said) in enumerate(zip(prompts, free, strict=True))
    ]
    bare = engine.say(asks, [None] * len(asks))
    return [Question(*one) for one in zip(asks, bare, plain, free, strict=True)]


def _compare(engine: Speaker, setup: Setup, cell: Cell, questions: Sequence[Question]) -> Result:
    before, num_answers, differences, remembered = Counts.read(), 0, 0, 0
    problem, batch = "", Batch.of(questions)
    try:
        for name, hints in _rounds(setup, cell, questions):
            start = Counts.read()
            said = engine.say(batch.asks, batch.hints(hints))
            num_answers += sum(len(one.token_ids) for one in said)
            differences += sum(
                not (one.says(bare) if cell.words_only else one.equals(bare))
                for one, bare in zip(said, batch.bare, strict=True)
            )
            if name == MEMORY:
                remembered += Counts.read().since(start).accepted
    except Exception as error:  # the engine is gone; the grid says so and goes on
        problem = f"{type(error).__name__}: {error}"
    changed = sum(one.bare.token_ids != one.free.token_ids for one in questions)
    ends = {reason for one in questions for reason, _ in one.bare.ends}
    counts = Counts.read().since(before)
    return Result(
        setup.name,
        cell.name,
        num_answers,
        counts.drafted,
        counts.accepted,
        remembered,
        counts.preemptions,
        changed,
        differences,
        cell.withheld,
        problem or _problem(cell, counts, remembered, changed, ends, differences),
    )


def _rounds(
    setup: Setup, cell: Cell, questions: Sequence[Question]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What headstart is told with each question, time after time."""
    chance = Random(f"{setup.name} {cell.name} drafts")
    answers = [question.bare.token_ids[0] for question in questions]
    others = [answers[place - 1] for place in range(len(answers))]
    for name, draft in DRAFTS.items():
        pairs = zip(answers, others, strict=True)
        yield name, [{"draft": list(draft(*pair, chance))} for pair in pairs]
    streams = [{"stream": f"{cell.name} {place}"} for place in range(len(answers))]
    yield "first of a stream", streams
    yield MEMORY, streams


def _problem(
    cell: Cell,
    counts: Counts,
    remembered: int,
    changed: int,
    ends: Set[str | None],
    differences: int,
) -> str:
    found = {
        f"{differences} answers differ from bare vLLM's": differences,
        "no draft was verified": not cell.withheld and not counts.drafted,
        "no draft was accepted": not cell.withheld and counts.drafted and not counts.accepted,
        "nothing was drafted from memory": not cell.withheld and not remembered,
        "drafts were verified": cell.withheld and counts.drafted,
        "the settings change no answer": cell.changes and not changed,
        f"no answer ended by {cell.ends_by}": cell.ends_by and cell.ends_by not in ends,
        "no request was preempted": cell.preempts and not counts.preemptions,
    }
    return "; ".join(problem for problem, is_found in found.items() if is_found)
