"""The drafters there are: one row each, which the engine, `bench` and `replay` read.

A drafter outside this package is named by where it is found, ``package.module:Class``; the class
takes no arguments.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from headstart.errors import DraftingError
from headstart.speculation.always_wrong import AlwaysWrong
from headstart.speculation.bridge import BridgeDrafter, RememberingBridge
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import Drafter
from headstart.speculation.memory import DEFAULT_MAX_BYTES, DEFAULT_MAX_TENANT_BYTES, Memory
from headstart.speculation.memory_log import read_memory_log
from headstart.speculation.ngram import Ngram
from headstart.speculation.ranker import Ranker
from headstart.speculation.vocabulary import TextVocabulary


@dataclass(frozen=True)
class MemoryLimits:
    """What drafters may remember, in bytes."""

    total: int = DEFAULT_MAX_BYTES
    tenant: int = DEFAULT_MAX_TENANT_BYTES


@dataclass(frozen=True)
class MemoryOptions:
    """What drafters may remember, of whom, and what they know from the start."""

    limits: MemoryLimits = MemoryLimits()
    warm: bool = True
    """Whether a stream may quote the other streams of its tenant."""
    log: Path | None = None
    """Answers that every stream of a tenant may quote from the start; see `read_memory_log`."""


@dataclass(frozen=True)
class Registration:
    """One drafter: its name, what it drafts from, and how it is built."""

    name: str
    drafts_from: str
    build: Callable[[MemoryOptions], Drafter]
    is_default: bool = True
    """Whether it drafts unless it is switched off."""
    trust_less_on_change: bool = False
    """Whether it is asked later, and for less, the more the scene has changed."""


def _memory(options: MemoryOptions) -> Memory:
    limits = options.limits
    memory = Memory(limits.total, limits.tenant, warm=options.warm)
    for answer in read_memory_log(options.log) if options.log is not None else ():
        memory.seed(answer.tenant, answer.question, answer.tokens)
    return memory


def _ranker(options: MemoryOptions) -> Ranker:
    ranker = Ranker(options.limits.total, warm=options.warm)
    for answer in read_memory_log(options.log) if options.log is not None else ():
        ranker.seed(answer.tenant, answer.question, answer.tokens)
    return ranker


REGISTERED = (
    Registration(
        "memory",
        "the target's earlier answers on the same stream",
        _memory,
        trust_less_on_change=True,
    ),
    Registration("ngram", "the prompt and the answer so far", lambda _: Ngram()),
    Registration(
        "ranker",
        "the same answers, by a rule that it learns from them",
        _ranker,
        is_default=False,
        trust_less_on_change=True,
    ),
    Registration(
        "wrong",
        "nothing: it measures what drafting costs where it cannot pay",
        lambda _: AlwaysWrong(),
        is_default=False,
    ),
)
DEFAULT_DRAFTERS = tuple(row.name for row in REGISTERED if row.is_default)


def registration(name: str) -> Registration:
    """The row of a drafter, registered here or named by where it is found."""
    for row in REGISTERED:
        if row.name == name:
            return row
    module, _, member = name.partition(":")
    try:
        made = getattr(import_module(module), member)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(row.name for row in REGISTERED)
        raise DraftingError(
            f"there is no drafter {name!r}. Name one of {known}, or a class as package.module:Class"
        ) from error
    return Registration(name, f"{name}, from outside headstart", lambda _: made())


def build_cascade(
    names: Iterable[str],
    vocabulary: TextVocabulary,
    options: MemoryOptions = MemoryOptions(),
    budget: DraftBudget | None = None,
    bridge: Path | None = None,
) -> Cascade:
    """A cascade of the drafters of these names, and of the bridge in a directory."""
    rows = [registration(name) for name in names]
    wary = frozenset(row.name for row in rows if row.trust_less_on_change)
    drafters = [row.build(options) for row in rows]
    if bridge is not None:
        drafters.append(_bridge(bridge, drafters, options))
    return Cascade(drafters, vocabulary, wary, budget=budget)


def _bridge(directory: Path, drafters: Iterable[Drafter], options: MemoryOptions) -> Drafter:
    """A bridge copies from the cascade's memory, where there is one."""
    for drafter in drafters:
        if isinstance(drafter, Memory):
            return BridgeDrafter.load(directory, drafter)
    return RememberingBridge.load(directory, _memory(options))
