"""What a caller may decide about drafting, and the form in which it reaches vLLM's scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from headstart.drafters.memory_log import read_memory_log
from headstart.drafters.registry import (
    DEFAULT_DRAFTERS,
    HOW_TO_INSTALL,
    REGISTERED,
    MemoryLimits,
    known_names,
    registration,
)
from headstart.errors import DraftingError

FIELD = "headstart"
NO_PROPOSALS = "headstart.engine.scheduler.NoProposals"
"""The proposer that vLLM is given: by it one sees that our scheduler drafts."""
DEFAULT_REHEARSALS = 0.25
MAX_REHEARSALS = 10
MAX_VERIFIED_TOKENS = 128  # of one request in one step: vLLM's rejection sampler ends beyond it


def check_drafting(max_draft_tokens: int, num_batches: int = 1) -> None:
    """Raise where vLLM could not verify drafts: too long, or with several batches in flight.

    A request whose last token is still being computed cannot be drafted for, and vLLM's first
    pipeline stage has no place for drafts at all.
    """
    if max_draft_tokens > MAX_VERIFIED_TOKENS:
        raise DraftingError(
            f"drafts of {max_draft_tokens} tokens: vLLM verifies {MAX_VERIFIED_TOKENS} at a time."
            f" Give {MAX_VERIFIED_TOKENS} or fewer; 32 is the default"
        )
    if num_batches > 1:
        raise DraftingError(
            f"{num_batches} batches are in flight at a time, and drafts need the last one's words."
            " Leave out pipeline_parallel_size and async_scheduling (tensor_parallel_size and"
            " data_parallel_size work), or leave drafting out with max_draft_tokens=0"
        )


@dataclass(frozen=True)
class Sources:
    """Which drafters draft inside the scheduler, and how all drafts are used."""

    drafters: tuple[str, ...] = DEFAULT_DRAFTERS
    """Names of `headstart.drafters.registry`, with what some take (``bridge=DIRECTORY``), or
    classes of yours as ``package.module:Class``."""
    abstain: bool = True
    """Draft less, or not at all, where drafts have not paid lately."""
    resync: bool = True
    """A drafter whose words were refused goes on from the target's."""
    paced: bool = True
    """While drafts shorten answers, hold prompts back for a moment beside those left behind.

    Off, first words come as soon as vLLM alone would bring them, and answers that nobody drafts for
    wait longer: for where the first word counts and the last does not.
    """
    warm: bool = True
    """A stream that knows little yet may quote the other streams of its tenant."""
    rehearsals: float | None = DEFAULT_REHEARSALS
    """Of the engine's time that all else takes, how much may be spent on answering live questions
    before their last frame has landed; 0: none, None: any."""
    memory_log: Path | None = None
    """Answers to quote from the start, a file that ``headstart train memory`` has written."""

    def __post_init__(self) -> None:
        for name in self.drafters:
            registration(name)
        if self.memory_log is not None and not self.warm:
            raise DraftingError(
                "a memory log is there for all streams of a tenant, and warm is off: leave out"
                " memory_log, or switch warm on"
            )

        if self.rehearsals is not None and not 0 <= self.rehearsals <= MAX_REHEARSALS:
            raise DraftingError(
                f"rehearsals is {self.rehearsals}: give the share of the engine's time that they"
                f" may take, from 0 to {MAX_REHEARSALS}, or None where they may take any"
            )

    def check_files(self) -> None:
        """Raise if a log or what a drafter takes cannot be read, sooner than the engine would."""
        if self.memory_log is not None:
            read_memory_log(self.memory_log)
        for row in map(registration, self.drafters):
            row.check(row.value)

    @classmethod
    def parse(cls, given: Any) -> Self:
        """From ``{"ngram": false, "abstain": true, "drafters": ["package.module:Class"]}``.

        A registered drafter is switched by its name (``"bridge": "DIRECTORY"``, if it takes one), a
        further one is listed under ``drafters``.
        """
        registered = list(dict.fromkeys([*known_names(), *HOW_TO_INSTALL]))
        switches = ("abstain", "resync", "paced", "warm")
        given = _known(("drafters", "memory_log", "rehearsals", *switches, *registered), given)
        more, log = given.pop("drafters", []), given.pop("memory_log", None)
        rehearsals = given.pop("rehearsals", cls.rehearsals)
        if isinstance(rehearsals, bool) or not isinstance(rehearsals, int | float | None):
            raise DraftingError(f"headstart's rehearsals are {rehearsals!r}: give a share, or null")
        if not isinstance(more, list) or not all(isinstance(name, str) for name in more):
            raise DraftingError(f"headstart's drafters are {more!r}: give a list of names")
        if log is not None and not isinstance(log, str):
            raise DraftingError(f"headstart's memory_log is {log!r}: give a path")
        own, chosen = {row.name for row in REGISTERED}, list[str]()
        for name in [name for name in registered if name not in own]:
            value = given.get(name)
            if value is None or isinstance(value, str):
                given.pop(name, None)
                chosen += [f"{name}={value}"] if value else []
        for name, value in given.items():
            if not isinstance(value, bool):
                raise DraftingError(f"headstart's source {name} is {value!r}: say true or false")
        switched = [name for name in registered if given.pop(name, name in DEFAULT_DRAFTERS)]
        drafters = tuple(dict.fromkeys([*switched, *more, *chosen]))
        log = None if log is None else Path(log)
        return cls(drafters, **given, rehearsals=rehearsals, memory_log=log)

    def as_json(self) -> dict[str, Any]:
        """The form `parse` reads."""
        switches = {row.name: row.name in self.drafters for row in REGISTERED}
        more = [name for name in self.drafters if name not in switches]
        return {
            **switches,
            "drafters": more,
            "abstain": self.abstain,
            "resync": self.resync,
            "paced": self.paced,
            "warm": self.warm,
            "rehearsals": self.rehearsals,
            "memory_log": None if self.memory_log is None else str(self.memory_log),
        }


@dataclass(frozen=True)
class SchedulerOptions:
    """What our scheduler is told inside vLLM's engine process.

    It travels in vLLM's ``additional_config``. A user of vLLM's own command sets the same with
    ``--additional-config '{"headstart": {"sources": {"ngram": false}}}'``.
    """

    sources: Sources = Sources()
    channel: str | None = None
    """The directory of the sockets over which drafts travel; see `DraftChannel`."""
    memory: MemoryLimits = MemoryLimits()  # noqa: RUF009 - frozen

    @classmethod
    def parse(cls, additional_config: Any) -> Self:
        """What vLLM's field holds for us; absent is as good as empty."""
        given = additional_config.get(FIELD) if isinstance(additional_config, Mapping) else None
        names = ("sources", "channel", "memory_bytes", "memory_tenant_bytes")
        given = _known(names, {} if given is None else given)
        channel = given.get("channel")
        if channel is not None and not isinstance(channel, str):
            raise DraftingError(f"headstart's channel is {channel!r}: give the path of a directory")
        for name in ("memory_bytes", "memory_tenant_bytes"):
            value = given.get(name, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise DraftingError(f"headstart's {name} is {value!r}: give a number of bytes")
        usual = MemoryLimits()
        memory = MemoryLimits(
            given.get("memory_bytes", usual.total), given.get("memory_tenant_bytes", usual.tenant)
        )
        return cls(Sources.parse(given.get("sources", {})), channel, memory)

    def additional_config(self) -> dict[str, Any]:
        """The form `parse` reads."""
        return {
            FIELD: {
                "sources": self.sources.as_json(),
                "channel": self.channel,
                "memory_bytes": self.memory.total,
                "memory_tenant_bytes": self.memory.tenant,
            }
        }


def _known(names: tuple[str, ...], given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not set(names).issuperset(given):
        raise DraftingError(
            f"headstart does not know {given!r}. It knows: {', '.join(sorted(names))}."
        )
    return dict(given)
