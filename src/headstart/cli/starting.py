"""Starts the engine for a command, shows how far it is, and says how long it took."""

import json
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from headstart.cli.phases import Start
from headstart.cli.terminal import divert, terminal
from headstart.engine.interrupts import interrupts_kept

if TYPE_CHECKING:
    from headstart.engine.headstart import Headstart
    from headstart.engine.question import Manner


def start_headstart(
    target: str,
    drafter: str | None,
    max_draft_tokens: int,
    vllm: Mapping[str, Any],
    drafter_vllm: Mapping[str, Any],
    *,
    num_frames: int | None,
    manner: "Manner",
    verbose: bool,
) -> "Headstart":
    """A running engine. While it starts, a terminal shows that it does, and in which part.

    With ``verbose`` vLLM's own messages are shown instead.
    """
    shown = terminal() if verbose else divert()
    if not verbose and shown.log is None:
        quieten()
    quiet = {"use_tqdm_on_load": verbose}
    with Start(shown, target).shown() as start, interrupts_kept():
        from headstart.engine.draft_model import draft_model
        from headstart.engine.headstart import Headstart

        headstart = Headstart(
            target,
            draft_model=draft_model(drafter, {**quiet, **drafter_vllm}) if drafter else None,
            max_draft_tokens=max_draft_tokens,
            manner=manner,
            num_frames=num_frames,
            vllm={**quiet, **vllm},
        )
        start.up()
    return headstart


def quieten() -> None:
    """Leave the terminal to the answer. In the environment, so that engine processes hear it."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    warnings.simplefilter("ignore")


def engine_arguments(pairs: list[str]) -> dict[str, Any]:
    """``name=value`` pairs as vLLM's arguments; a value is JSON where it parses, else text."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{pair!r} is not name=value, e.g. --vllm dtype=float32")
        try:
            arguments[name.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            arguments[name.replace("-", "_")] = value
    return arguments
