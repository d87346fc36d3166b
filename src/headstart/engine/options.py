"""What a caller may decide about drafting, and the form in which it reaches vLLM's scheduler."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from headstart.errors import DraftingError

FIELD = "headstart"


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
        return cls(sources, line)

    def additional_config(self) -> dict[str, Any]:
        """The form `parse` reads."""
        return {FIELD: {"sources": asdict(self.sources), "line": self.line}}


def _known(kind: type, given: Any) -> dict[str, Any]:
    names = {option.name for option in fields(kind)}
    if not isinstance(given, Mapping) or not names.issuperset(given):
        raise DraftingError(
            f"headstart does not know {given!r}. It knows: {', '.join(sorted(names))}."
        )
    return dict(given)
