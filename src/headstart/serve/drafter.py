"""The drafters as the server knows them: asked for each request, never waited for.

The drafter runs in a process of its own, watched and started again by the engine's `Companion`.
Without it, or while it is down, requests are answered as if there were none.
"""

import contextlib
import logging
import uuid
from collections.abc import Iterator
from typing import Any

from headstart.engine.companion import Companion
from headstart.engine.line import Line
from headstart.engine.listener import Listener, OnDraft
from headstart.engine.model import Model
from headstart.engine.options import EventDrafter, SchedulerOptions
from headstart.media.clip import Clip
from headstart.media.events import Events
from headstart.serve.settings import Settings, SettingsError

_log = logging.getLogger("headstart")


class Drafter:
    """Owns the ear of the server and, where one is configured, the drafter's process."""

    def __init__(self, settings: Settings, additional_config: Any) -> None:
        """Start it; returns before its engine is up."""
        options = SchedulerOptions.parse(additional_config)
        self._listener: Listener | None = None
        self._companion: Companion | None = None
        if options.line is None:
            if settings.drafter is not None:
                raise SettingsError(
                    "the drafter has no way to the target's scheduler; start vLLM with"
                    ' --additional-config \'{"headstart": {"line": "DIRECTORY"}}\''
                )
            return
        line = Line(options.line)
        self._listener = Listener(line)
        if settings.drafter is not None:
            model = Model.checked(settings.drafter)
            event_drafter = EventDrafter(settings.drafter, settings.drafter_vllm)
            self._companion = Companion(
                event_drafter, model.view, line, self._listener, settings.drafter_seat
            )
            _log.info("the drafter %s is starting beside the target", settings.drafter)

    @contextlib.contextmanager
    def drafting(
        self, events: Events | None, question: str, max_tokens: int, on_draft: OnDraft
    ) -> Iterator[str]:
        """Drafts are made and heard until the block is left. Yields the name they go by."""
        if self._companion is not None and events is not None:
            with self._companion.drafting(
                Clip(events=events), question, max_tokens, on_draft
            ) as ask:
                yield ask
            return
        ask = uuid.uuid4().hex
        if self._listener is None:
            yield ask
            return
        with self._listener.hearing(ask, on_draft):
            yield ask

    @property
    def is_up(self) -> bool:
        """Whether the drafter's engine is up now."""
        return self._companion is not None and self._companion.process.is_ready

    @property
    def pid(self) -> int | None:
        """Of the drafter's process, while it runs."""
        return self._companion.process.pid if self._companion is not None else None

    def close(self) -> None:
        """End the process and stop listening."""
        if self._companion is not None:
            self._companion.close()
        if self._listener is not None:
            self._listener.close()
