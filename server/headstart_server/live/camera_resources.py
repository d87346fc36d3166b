"""What a live camera gets of the server, and how many there may be."""

import asyncio
from collections import Counter
from dataclasses import dataclass

from headstart.engine.headstart import Headstart
from headstart.engine.loop_thread import EngineLoop
from headstart.engine.question import RequestOptions
from headstart.engine.session import Session
from headstart.engine.target import Target
from headstart.speculation.drafter import StreamKey
from headstart_server import metrics
from headstart_server.admission import Admission
from headstart_server.limits import Limits
from headstart_server.live.messages import CameraRequest, grammar_of
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.loader import MediaBudget
from headstart_server.refusal import bad_request, too_much


@dataclass(frozen=True)
class TenantContext:
    """What a tenant's media pass on their way into windows; all but its name is the server's."""

    tenant: str
    admission: Admission
    decoder: MediaDecoder
    room: MediaBudget
    limits: Limits


@dataclass(frozen=True)
class CameraResources:
    """What one camera works with."""

    context: TenantContext
    session: Session
    bare: Session | None
    """vLLM alone, where the server compares with it."""


class CameraSlots:
    """Gives out so many as there are. Made in an event loop and used from it only."""

    def __init__(
        self,
        target: Target,
        admission: Admission,
        decoder: MediaDecoder,
        room: MediaBudget,
        limits: Limits,
        bare: Headstart | None = None,
    ) -> None:
        self._target, self._loop = target, EngineLoop(asyncio.get_running_loop())
        self._admission, self._decoder, self._room = admission, decoder, room
        self._limits, self._bare = limits, bare
        self._taken: Counter[str] = Counter()

    async def take(self, tenant: str, wanted: CameraRequest) -> CameraResources:
        """What a camera needs, until `give_back`; raises a refusal if there are too many."""
        grammar = grammar_of(wanted.json_schema, self._limits)
        if grammar is not None:
            await self._decoder.check_grammar(tenant, grammar)
        if wanted.compare and self._bare is None:
            raise bad_request(
                "this server has no engine to compare with: start it with --set"
                " compare=true, or leave compare out"
            )
        if self._taken.total() >= self._limits.max_live:
            metrics.TURNED_AWAY.labels("full").inc()
            raise too_much("too many live cameras are connected")
        if self._taken[tenant] >= self._limits.max_tenant_live:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your live cameras are connected")
        self._admission.memory.admit()
        options = RequestOptions(wanted.system)
        resources = CameraResources(
            TenantContext(tenant, self._admission, self._decoder, self._room, self._limits),
            Session(self._target, self._loop, StreamKey(tenant, wanted.stream), options),
            self._bare.session(wanted.stream, tenant, options) if self._bare else None,
        )
        self._taken[tenant] += 1
        metrics.count_cameras(tenant, self._taken[tenant], self._taken.total())
        return resources

    def give_back(self, tenant: str) -> None:
        self._taken -= Counter((tenant,))
        metrics.count_cameras(tenant, self._taken[tenant], self._taken.total())
