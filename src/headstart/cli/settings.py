"""`name=value` on the command line: a command's settings, and arguments of vLLM's own.

The settings that few people change are a frozen dataclass below `CommandSettings`, taken by one
option of the command, and read from it:

    given: Annotated[list[str] | None, SET, ReplaySettings] = None
    settings = ReplaySettings.read(given)
"""

import inspect
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

import typer

SET = typer.Option(
    "--set", metavar="NAME=VALUE", hidden=True, help="One of the settings below; repeatable."
)
DRAFT_MODEL = "draft_model."
"""Before the name of a vLLM argument: it is for the draft model's engine."""
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}


def setting(
    default: Any, meaning: str, *, at_least: float | None = None, exists: bool = False
) -> Any:
    """Declare a field of `CommandSettings`; ``exists`` is for a path that must be there."""
    about = {"meaning": meaning, "at_least": at_least, "exists": exists}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class CommandSettings:
    """The settings of one command that few people change."""

    @classmethod
    def read(cls, pairs: Sequence[str] | None) -> Self:
        """The settings with what `--set` gave; what cannot be is said with all that can."""
        return cls(**{name: cls._checked(name, text) for name, text in _split(pairs, "--set")})

    @classmethod
    def rows(cls) -> Iterator[tuple[str, str]]:
        """Each setting as it may be given, with what it means and what it is if it is not given."""
        for each in fields(cls):
            kind = _kind(cls, each.name).__name__.lower()
            usual = "" if each.default is None else json.dumps(each.default).strip('"')
            said = (
                f"{each.metadata['meaning']} [default: {usual}]"
                if usual
                else each.metadata["meaning"]
            )
            yield f"{each.name}=<{kind}>", said

    @classmethod
    def _checked(cls, name: str, text: str) -> Any:
        known = {each.name: each for each in fields(cls)}
        if name not in known:
            raise typer.BadParameter(
                f"--set {name}: there is no such setting; there are {', '.join(known)}"
            )
        kind, bound = _kind(cls, name), known[name].metadata["at_least"]
        limit = "" if bound is None else f" of at least {bound:g}"
        try:
            is_switch = kind is bool
            value: Any = {"true": True, "false": False}[text.lower()] if is_switch else kind(text)
            if (kind is float and not math.isfinite(value)) or (limit and value < bound):
                raise ValueError
        except (KeyError, ValueError):
            raise typer.BadParameter(f"--set {name}={text}: give {_KINDS[kind]}{limit}") from None
        if known[name].metadata["exists"] and not value.exists():
            raise typer.BadParameter(f"--set {name}={text}: there is no such path")
        return value


def settings_of(command: Callable[..., Any] | None) -> type[CommandSettings] | None:
    hints = get_type_hints(inspect.unwrap(command), include_extras=True) if command else {}
    marks = (mark for hint in hints.values() for mark in getattr(hint, "__metadata__", ()))
    found = (mark for mark in marks if isinstance(mark, type) and issubclass(mark, CommandSettings))
    return next(found, None)


def named_values(pairs: Sequence[str] | None, option: str) -> dict[str, Any]:
    """What an option gave as name=value; a value is JSON where it parses, else text."""
    values: dict[str, Any] = {}
    for name, text in _split(pairs, option):
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            values[name] = text
    return values


def engine_arguments(
    pairs: Sequence[str] | None, draft_model: str | Path | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `--vllm` gave: the arguments of the target's engine, and of the draft model's."""
    ours: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name, value in named_values(pairs, "--vllm").items():
        (beside if name.startswith(DRAFT_MODEL) else ours)[name.removeprefix(DRAFT_MODEL)] = value
    if beside and not draft_model:
        raise typer.BadParameter(
            f"--vllm {DRAFT_MODEL}{next(iter(beside))}: there is no draft model; name one with"
            " --draft-model, or leave this out"
        )
    return ours, beside


def _kind(of: type[CommandSettings], name: str) -> type[Any]:
    hint = get_type_hints(of)[name]
    kinds: tuple[type[Any], ...] = get_args(hint) or (hint,)
    return next(kind for kind in kinds if kind is not type(None))


def _split(pairs: Sequence[str] | None, option: str) -> Iterator[tuple[str, str]]:
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{option} {pair}: this is not name=value")
        yield name.replace("-", "_"), value
