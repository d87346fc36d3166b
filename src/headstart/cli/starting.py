"""Starts the engine for a command, shows how far it is, and says how long it took."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstart.cli.options import AskSettings
from headstart.cli.phases import Start
from headstart.cli.settings import engine_arguments, named_values
from headstart.cli.terminal import divert, is_verbose, quieten
from headstart.engine.interrupts import interrupts_kept
from headstart.engine.question import Manner

if TYPE_CHECKING:
    from headstart.engine.headstart import Headstart


def start_headstart(
    target: str,
    settings: AskSettings,
    *,
    draft_model: str | None,
    num_frames: int | None,
    vllm: Sequence[str] | None,
    sampling: Sequence[str] | None = None,
) -> "Headstart":
    """A running engine. While it starts, a terminal shows that it does, and in which part."""
    manner = Manner(settings.system, named_values(sampling, "--sampling"), settings.lora)
    arguments, beside = engine_arguments(vllm)
    if settings.lora is not None:
        arguments = {"enable_lora": True, **arguments}
    shown = divert()
    if shown.log is None:
        quieten()
    quiet = {"use_tqdm_on_load": is_verbose()}
    with Start(shown, target).shown() as start, interrupts_kept():
        from headstart.engine.draft_model import draft_model as by_name
        from headstart.engine.headstart import Headstart

        headstart = Headstart(
            target,
            draft_model=by_name(draft_model, {**quiet, **beside}) if draft_model else None,
            max_draft_tokens=settings.max_draft_tokens,
            manner=manner,
            num_frames=num_frames,
            vllm={**quiet, **arguments},
        )
        start.up()
    return headstart
