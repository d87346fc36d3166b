"""Compares answers with drafts with bare vLLM's, token for token, on one engine after the other.

Bare vLLM is also compared with itself, asked again and asked several questions at once. In half
precision the sums of a pass depend on how many tokens are in it, so two words of nearly the same
probability can change places without any draft. Each first difference is kept with its margin: by
how many nats bare vLLM preferred its own word to the next likely one.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from headstart.answers.answer import Answer
from headstart.engine.headstart import Headstart
from headstart.engine.options import Sources
from headstart.engine.question import RequestOptions
from headstart_research.bench.asker import Asker, FrameByFrame, WholeClip
from headstart_research.bench.methods import Method
from headstart_research.bench.result import BARE
from headstart_research.bench.workloads import Item, Workload

AT_ONCE = 4
DRAFTED = Method(
    "headstart", "every draft is verified, whether it pays or not", Sources(abstain=False)
)
ALONE = Method(BARE, "vLLM alone, with its own scheduler")
MAX_MARGINS = 20

Start = Callable[[Method], Headstart]


@dataclass(frozen=True)
class Difference:
    """Where two answers about a clip part."""

    clip: int
    token: int
    """The place of the first other token."""
    num_tokens: int
    """Of bare vLLM's answer."""
    margin: float | None
    """In nats. None where bare vLLM was not asked for it, or could not say."""


@dataclass(frozen=True)
class Comparison:
    """An engine that was asked about all clips in one way, beside bare vLLM asked one by one."""

    engine: str
    way: str
    answers: int
    drafted_tokens: int
    accepted_tokens: int
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Equality:
    """What one setting of vLLM showed."""

    comparisons: tuple[Comparison, ...]
    answers: tuple[Answer, ...]
    """Bare vLLM's, one for each clip."""


def compare(start: Start, whole: Workload, live: Workload) -> Equality:
    """Ask both engines about the clips of a workload's first camera, in all ways.

    ``live`` has the same clips. The engine with drafts is asked first, so that bare vLLM is up
    when it is known which margins to ask it for.
    """
    items = whole.camera(0, 0)
    with start(DRAFTED) as engine:
        camera = WholeClip(engine.session("camera", "one by one"), whole)
        drafted = {
            "one by one": _one_by_one(camera, items),
            "the same clips again": _one_by_one(camera, items),
            f"{AT_ONCE} at once": _at_once(engine, whole, items),
            "frame by frame": _one_by_one(
                FrameByFrame(engine.session("camera", "frame by frame"), live), items
            ),
        }
    with start(ALONE) as engine:
        own = _one_by_one(WholeClip(engine.session("camera", "one by one"), whole), items)
        again = {
            "one by one, again": _one_by_one(
                WholeClip(engine.session("camera", "again"), whole), items
            ),
            f"{AT_ONCE} at once": _at_once(engine, whole, items),
        }
        said = [(DRAFTED.name, *way) for way in drafted.items()]
        said += [(ALONE.name, *way) for way in again.items()]
        places = {place: None for _, _, answers in said for place in _places(own, answers)}
        # Last: where a likely token has no text, vLLM 0.32 cannot go on after it is asked for it.
        margins = _margins(engine, items, own, list(places)[:MAX_MARGINS])
    found = [_comparison(*one, own, margins) for one in said]
    return Equality(tuple(found), tuple(own))


def _one_by_one(asker: Asker, items: Sequence[Item]) -> list[Answer]:
    return [asker.ask(item).answer for item in items]


def _at_once(engine: Headstart, work: Workload, items: Sequence[Item]) -> list[Answer]:
    """Several cameras share the clips among them and are asked at the same time."""
    cameras = [
        WholeClip(engine.session(f"camera {number}", "at once"), work) for number in range(AT_ONCE)
    ]
    said: dict[int, Answer] = {}

    def ask(camera: int) -> None:
        for number in range(camera, len(items), AT_ONCE):
            said[number] = cameras[camera].ask(items[number]).answer

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, range(AT_ONCE)))
    return [said[number] for number in range(len(items))]


Place = tuple[int, int]
"""A clip, and a token of bare vLLM's answer about it."""


def _places(own: Sequence[Answer], said: Sequence[Answer]) -> list[Place]:
    pairs = enumerate(zip(own, said, strict=True))
    parted = ((clip, first_difference(a.token_ids, b.token_ids)) for clip, (a, b) in pairs)
    return [(clip, place) for clip, place in parted if place is not None]


def _comparison(
    engine: str,
    way: str,
    said: Sequence[Answer],
    own: Sequence[Answer],
    margins: Mapping[Place, float],
) -> Comparison:
    return Comparison(
        engine,
        way,
        len(said),
        sum(answer.num_drafted_tokens for answer in said),
        sum(answer.num_accepted_tokens for answer in said),
        tuple(
            Difference(clip, token, len(own[clip].token_ids), margins.get((clip, token)))
            for clip, token in _places(own, said)
        ),
    )


def _margins(
    bare: Headstart, items: Sequence[Item], own: Sequence[Answer], places: Sequence[Place]
) -> dict[Place, float]:
    """How far ahead of the next likely token bare vLLM's own was, as far as it says so."""
    found: dict[Place, float] = {}
    with suppress(Exception):  # the comparison itself is complete
        ranked = bare.session("camera", "margins", RequestOptions(sampling={"logprobs": 2}))
        for clip, token in places:
            item, before = items[clip], own[clip].token_ids[:token]
            said = ranked.ask(item.clip, item.question, max_tokens=token + 1)
            if said.token_ids[:token] == before and len(said.margins) > token:
                found[clip, token] = round(said.margins[token], 4)
    return found


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place where two answers have other tokens; one that ends sooner differs there."""
    pairs = enumerate(zip_longest(one, other))
    return next((place for place, (a, b) in pairs if a != b), None)


def num_different(rows: Sequence[Mapping[str, Any]], engine: str) -> tuple[int, int]:
    """Of an engine's rows as JSON: how many answers differ, and how many there are."""
    own = [row for row in rows if row["engine"] == engine]
    return sum(len(row["differences"]) for row in own), sum(row["answers"] for row in own)
