"""The drafters there are, which the engine, `bench` and `replay` build by their names.

Memory and n-grams are the core's. An installed package adds others as entry points, each a
`Registration`. A class that nobody registered is named by where it is found,
``package.module:Class``; it takes no arguments.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from headstart.drafters.memory import DEFAULT_MAX_BYTES, DEFAULT_MAX_TENANT_BYTES, Memory
from headstart.drafters.memory_log import RememberedAnswer, read_memory_log
from headstart.drafters.ngram import Ngram
from headstart.errors import DraftingError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import Drafter

ENTRY_POINTS = "headstart.drafters"
"""The group under which a package registers its drafters: a name, and a `Registration`."""
DEFAULT_DRAFTERS = ("memory", "ngram")
"""Those that draft unless they are switched off. All others draft where somebody names them."""
HOW_TO_INSTALL = dict.fromkeys(("bridge", "ranker", "wrong"), "pip install 'headstart[research]'")


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
class Ingredients:
    """What the drafters of one cascade are built of."""

    options: MemoryOptions = MemoryOptions()

    @cached_property
    def memory(self) -> Memory:
        """One for all of them. Whoever reads it tells it of its requests, as the cascade may too:
        told twice, it learns once."""
        limits = self.options.limits
        memory = Memory(limits.total, limits.tenant, warm=self.options.warm)
        for answer in self.known_answers():
            memory.seed(answer.tenant, answer.question, answer.tokens)
        return memory

    def known_answers(self) -> Iterable[RememberedAnswer]:
        return () if self.options.log is None else read_memory_log(self.options.log)


@dataclass(frozen=True)
class Registration:
    """One drafter: its name, what it drafts from, how it is built, and what it needs."""

    name: str
    drafts_from: str
    build: Callable[[Ingredients, str], Drafter]
    """Given also what follows its name."""
    trust_less_on_change: bool = False
    """Whether it is asked later, and for less, the more the scene has changed."""
    takes: str = ""
    """What follows its name and ``=``, such as ``DIRECTORY``; empty where nothing does."""
    check: Callable[[str], object] = lambda value: None
    """Raises if what it takes cannot be used, sooner than an engine would."""
    vllm_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda vllm: {}
    """What vLLM is told beside the caller's own arguments, which it is given; by vLLM's names."""
    beside: str = "words"
    """Which of `engine.draft_model.ENTRY_POINTS` a model is that runs beside the target with it."""
    value: str = ""
    """What followed its name, where it was named."""

    def built(self, ingredients: Ingredients) -> Drafter:
        return self.build(ingredients, self.value)


REGISTERED = (
    Registration(
        "memory",
        "the target's earlier answers on the same stream",
        lambda ingredients, _: ingredients.memory,
        trust_less_on_change=True,
    ),
    Registration("ngram", "the prompt and the answer so far", lambda *_: Ngram()),
)
"""The core's own."""


def installed() -> list[Registration]:
    """The core's own, and those of installed packages."""
    return [*REGISTERED, *(found.load() for found in entry_points(group=ENTRY_POINTS))]


def known_names() -> list[str]:
    """Of those that are installed, the core's own first."""
    return [row.name for row in REGISTERED] + sorted(entry_points(group=ENTRY_POINTS).names)


def registration(name: str) -> Registration:
    """The row of a drafter: ``memory``, ``bridge=DIRECTORY``, ``package.module:Class``."""
    given, _, value = name.partition("=")
    row = _found(given)
    if bool(row.takes) != bool(value):
        wanted = f"{given}={row.takes}" if row.takes else given
        raise DraftingError(f"the drafter {name!r} is not named in full: name it as {wanted}")
    return replace(row, value=value)


def _found(name: str) -> Registration:
    for row in REGISTERED:
        if row.name == name:
            return row
    try:
        for found in entry_points(group=ENTRY_POINTS, name=name):
            registered: Registration = found.load()
            return registered
        module, _, member = name.partition(":")
        made = getattr(import_module(module), member)
    except (ImportError, AttributeError, ValueError) as error:
        known = f"Name one of {', '.join(known_names())}, or a class as package.module:Class"
        how = f"Install it: {HOW_TO_INSTALL[name]}" if name in HOW_TO_INSTALL else known
        raise DraftingError(f"there is no drafter {name!r}. {how}") from error
    return Registration(name, f"{name}, from outside headstart", lambda *_: made())


def build_cascade(
    names: Iterable[str],
    vocabulary: TextVocabulary,
    options: MemoryOptions = MemoryOptions(),
    budget: DraftBudget | None = None,
) -> Cascade:
    rows, ingredients = [registration(name) for name in names], Ingredients(options)
    wary = frozenset(row.name for row in rows if row.trust_less_on_change)
    drafters = [row.built(ingredients) for row in rows]
    return Cascade(drafters, vocabulary, wary, budget=budget)
