"""An approximate answer beside the exact one: shown until the exact one has words of its own."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any

from headstart.engine.approximate_answers import SOURCE
from headstart.engine.drafter.messages import Drafted
from headstart.engine.front_end import Asking
from headstart.engine.request_record import RequestRecord
from headstart.speculation.draft import Draft

_log = logging.getLogger(__name__)

MAX_LEAD_S = 2.0
"""So long the exact request waits for the first previewed words, and not longer."""


@contextlib.asynccontextmanager
async def previewing(
    asking: Asking, record: RequestRecord, outputs: AsyncGenerator[Any]
) -> AsyncGenerator[asyncio.Event]:
    """Show an approximate request's ``outputs``, which fill ``record``, as previews of a question.

    The event is set when the first of them has come, or comes too late. To hand the exact request
    to the engine before would make the preview wait for the exact prompt. Leaving the block cancels
    the rest.
    """
    begun = asyncio.Event()
    showing = asyncio.create_task(_show(asking, record, outputs, begun))
    late = asyncio.get_running_loop().call_later(MAX_LEAD_S, begun.set)
    try:
        yield begun
    finally:
        late.cancel()
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await showing


async def _show(
    asking: Asking, record: RequestRecord, outputs: AsyncGenerator[Any], begun: asyncio.Event
) -> None:
    exact = asking.record
    try:
        async with contextlib.aclosing(outputs):
            async for _ in outputs:
                if exact.token_ids:
                    return  # the target speaks for itself
                draft = Draft(tuple(record.token_ids), SOURCE, time.monotonic())
                asking.hear(Drafted(exact.request_id, draft))
                begun.set()
    except Exception:
        _log.exception("a question is answered without its approximate preview")
    finally:
        begun.set()
