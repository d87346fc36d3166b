"""Whether this server can answer now: its engine, its decoders, its drafter, its memory.

vLLM's own health check reads a flag, which does not change when the engine hangs. So the engine is
called every two seconds, through the loop in which it computes answers.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from headstart.engine.front_end import FrontEnd
from headstart_server import metrics
from headstart_server.admission import Admission
from headstart_server.auth import Caller
from headstart_server.media.decoder import MediaDecoder

EVERY_S = 2.0


class Heartbeat:
    """Used from one event loop only."""

    def __init__(
        self,
        beat: Callable[[], Awaitable[object]],
        deadline_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._beat = beat
        self._clock = clock
        self._deadline_s = deadline_s
        # Often enough that one slow response does not miss the deadline.
        self._every_s = min(EVERY_S, deadline_s / 4)
        self._last_s = self._clock()

    @property
    def age_s(self) -> float:
        return self._clock() - self._last_s

    @property
    def is_alive(self) -> bool:
        return self.age_s <= self._deadline_s

    async def run(self) -> None:
        """Call the engine for ever, one call at a time: calls to a hung engine do not pile up."""
        while True:
            with contextlib.suppress(Exception):  # a failed call is no response
                await self._beat()
                self._last_s = self._clock()
            await asyncio.sleep(self._every_s)


class Readiness:
    """Made in an event loop and used from it only; `close` it at the end."""

    def __init__(
        self, front_end: FrontEnd, decoder: MediaDecoder, admission: Admission, heartbeat: Heartbeat
    ) -> None:
        self._front_end, self._decoder = front_end, decoder
        self._admission, self._heartbeat = admission, heartbeat
        self._beating = asyncio.create_task(heartbeat.run())
        metrics.FREE_BYTES.set_function(lambda: admission.memory.free_bytes)
        metrics.HEARTBEAT_AGE.set_function(lambda: heartbeat.age_s)
        metrics.DRAFTER_UP.set_function(lambda: self._drafter_is_up)

    @property
    def engine_is_dead(self) -> bool:
        return bool(self._front_end.engine.errored)

    @property
    def _drafter_is_up(self) -> bool:
        model = self._front_end.draft_model
        return model is not None and model.is_up

    async def state(self, caller: Caller | None) -> dict[str, Any]:
        """Whether it is ready; and to somebody with a key, why not."""
        engine, decoders = await self._engine(), "up" if self._decoder.is_up else "down"
        requests, is_short = self._admission.requests, self._admission.memory.is_high
        ready = engine == decoders == "up" and not requests.draining and not is_short
        if caller is None:
            return {"ready": ready}
        drafter = "up" if self._drafter_is_up else "down"
        sees_all = caller.sees_all
        return {
            "ready": ready,
            "engine": engine,
            "decoders": decoders,
            "drafter": "none" if self._front_end.draft_model is None else drafter,
            "draining": requests.draining,
            "short_of_memory": is_short,
            "in_flight": requests.num if sees_all else requests.num_of(caller.name),
        }

    async def _engine(self) -> str:
        try:
            await self._front_end.engine.check_health()
        except Exception:
            return "down"
        return "up" if self._heartbeat.is_alive else "hung"

    def close(self) -> None:
        self._beating.cancel()
