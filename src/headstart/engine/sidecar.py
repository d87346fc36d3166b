"""Everything beside a target: the line, the ear on it, and the drafter where one is wanted.

Started before the target, whose engine is then given `arguments` and `seat`; whoever starts a
target of their own, a server for instance, uses the same.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Self

from headstart.drafting.translation import check_same_spelling
from headstart.engine.companion import Companion
from headstart.engine.line import OwnedLine
from headstart.engine.listener import Listener, OnDraft
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, SchedulerOptions, Sources, check_drafting
from headstart.engine.placement import Machine, Placement, place
from headstart.engine.target import drafting_arguments
from headstart.errors import DraftingError
from headstart.media.clip import Clip


class Sidecar:
    """Owns the line, the listener's thread and the drafter's process, until `close`."""

    def __init__(
        self,
        target: Model,
        drafter: EventDrafter | None,
        sources: Sources,
        max_draft_tokens: int,
        vllm: Mapping[str, Any],
    ) -> None:
        """For a target to be started with ``vllm``. Returns before the drafter's engine is up."""
        for taken in ("scheduler_cls", "speculative_config"):
            if taken in vllm:
                raise DraftingError(
                    f"{taken} is where headstart puts its drafts: leave it out, or leave drafting"
                    " to vLLM with max_draft_tokens=0"
                )
        check_drafting(max_draft_tokens, int(vllm.get("pipeline_parallel_size", 1)))
        alone = int(vllm.get("data_parallel_size", 1)) == 1
        if drafter is not None and not alone:
            raise DraftingError(
                "A drafter is heard by one engine, not by data_parallel_size of them: start one"
                " Headstart for each, or leave the drafter out"
            )
        with contextlib.ExitStack() as undo:
            owned = OwnedLine.take()
            undo.callback(owned.close)
            self._listener = Listener(owned.line)
            undo.callback(self._listener.close)
            options = SchedulerOptions(sources, owned.line.directory if alone else None)
            self.arguments = {**vllm, **drafting_arguments(max_draft_tokens, options)}
            self.arguments["additional_config"] |= vllm.get("additional_config", {})
            placement = Placement()
            self.companion: Companion | None = None
            if drafter is not None:
                seen = Model.checked(drafter.model)
                check_same_spelling(target.text_pieces(), seen.text_pieces())
                placement = place(Machine.here(), vllm, drafter.vllm, os.environ)
                self.companion = Companion(
                    drafter, seen.view, owned.line, self._listener, placement.drafter
                )
                undo.callback(self.companion.close)
            self.seat = placement.target
            self._ending = undo.pop_all()

    def wait_ready(self) -> None:
        """Return when the drafter, where there is one, can draft; raise if it cannot."""
        if self.companion is not None:
            self.companion.wait_ready()

    @contextlib.contextmanager
    def drafting(
        self,
        clip: Clip,
        question: str,
        max_tokens: int,
        on_draft: OnDraft,
        wanted: bool = True,
    ) -> Iterator[str]:
        """Drafts are made, and heard, until the block is left. Yields the ask's name.

        The name goes into the request's `AskDetails`; ``on_draft`` is called from a thread. Where
        the drafter is not ``wanted`` it is not set to work.
        """
        if self.companion is not None and wanted:
            with self.companion.drafting(clip, question, max_tokens, on_draft) as ask:
                yield ask
        else:
            ask = uuid.uuid4().hex
            with self._listener.hearing(ask, on_draft):
                yield ask

    def close(self) -> None:
        """End the process and the threads."""
        self._ending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
