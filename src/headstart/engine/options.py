"""What a caller may decide about drafting, and the form in which it reaches vLLM's scheduler."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from headstart.drafters.memory import DEFAULT_MAX_BYTES, DEFAULT_MAX_TENANT_BYTES
from headstart.errors import DraftingError

FIELD = "headstart"
MEMORY_LIMITS = ("memory_bytes", "memory_tenant_bytes")
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
    """Which sources of drafts are heard beside a drafter, and how."""

    memory: bool = True
    """The target's earlier answers on the same stream."""
    ngram: bool = True
    """What the prompt and the answer so far already hold."""
    abstain: bool = True
    """Draft less, or not at all, where drafts have not paid lately."""
    resync: bool = True
    """A drafter whose words were refused goes on from the target's."""
    rehearsal: bool = False
    """Also one that is always wrong: to measure what drafting costs where it cannot pay."""


@dataclass(frozen=True)
class EventDrafter:
    """A second model that sees the same clip its own way, in an engine and a process of its own."""

    model: str | Path
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's own engine arguments, by its names."""
    max_tokens: int = 256
    """Of one answer, this many are drafted at most."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise DraftingError(
                f"max_tokens of the drafter is {self.max_tokens}: leave the drafter out instead"
            )


@dataclass(frozen=True)
class SchedulerOptions:
    """What our scheduler is told inside vLLM's engine process.

    Travels in vLLM's own free field, so whoever runs vLLM without our command sets the same with
    ``--additional-config '{"headstart": {"sources": {"ngram": false}}}'``.
    """

    sources: Sources = Sources()
    line: str | None = None
    """The directory of the sockets that a drafter is heard on; see `engine.line`."""
    memory_bytes: int = DEFAULT_MAX_BYTES
    """What earlier answers may take, of all tenants."""
    memory_tenant_bytes: int = DEFAULT_MAX_TENANT_BYTES
    """The same, of one tenant."""

    @classmethod
    def parse(cls, additional_config: Any) -> Self:
        """What vLLM's field holds for us; absent is as good as empty."""
        given = additional_config.get(FIELD) if isinstance(additional_config, Mapping) else None
        given = _known(cls, given if given is not None else {})
        sources = Sources(**_known(Sources, given.get("sources", {})))
        line = given.get("line")
        if line is not None and not isinstance(line, str):
            raise DraftingError(f"headstart's line is {line!r}: give the path of a directory")
        for name, value in asdict(sources).items():
            if not isinstance(value, bool):
                raise DraftingError(f"headstart's source {name} is {value!r}: say true or false")
        limits = {name: given[name] for name in MEMORY_LIMITS if name in given}
        for name, value in limits.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise DraftingError(f"headstart's {name} is {value!r}: give a number of bytes")
        return cls(sources, line, **limits)

    def additional_config(self) -> dict[str, Any]:
        """The form `parse` reads."""
        return {FIELD: asdict(self)}


def _known(kind: type, given: Any) -> dict[str, Any]:
    names = {option.name for option in fields(kind)}
    if not isinstance(given, Mapping) or not names.issuperset(given):
        raise DraftingError(
            f"headstart does not know {given!r}. It knows: {', '.join(sorted(names))}."
        )
    return dict(given)
