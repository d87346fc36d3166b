"""All live cameras of the server: how many there may be, and how long one waits for its client."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable

from headstart.engine.headstart import Headstart
from headstart.engine.loop_thread import EngineLoop
from headstart.engine.manner import Manner
from headstart.engine.session import Session
from headstart.engine.target import Target
from headstart.serve import metrics
from headstart.serve.entrance import Entrance
from headstart.serve.live.camera import Camera
from headstart.serve.live.gate import Gate
from headstart.serve.live.messages import Resume, Start, grammar_of
from headstart.serve.live.outgoing import Outgoing
from headstart.serve.media.decoder import MediaDecoder
from headstart.serve.media.room import MediaRoom
from headstart.serve.refusal import bad_request, too_much
from headstart.serve.settings import Limits
from headstart.speculation.drafter import StreamKey

Token = bytes
"""Names a camera: the digest of its tenant and its token, so that no other tenant can name it."""


class Cameras:
    """Made in an event loop and used from it only."""

    def __init__(
        self,
        target: Target,
        entrance: Entrance,
        decoder: MediaDecoder,
        room: MediaRoom,
        limits: Limits,
        on_failure: Callable[[Exception], None],
        bare: Headstart | None = None,
    ) -> None:
        """``bare`` is vLLM alone, where the server compares with it."""
        self._bare = bare
        self._target, self._loop = target, EngineLoop(asyncio.get_running_loop())
        self._entrance, self._decoder, self._room = entrance, decoder, room
        self._limits, self._on_failure = limits, on_failure
        self._cameras: dict[Token, Camera] = {}
        self._of_tenant: Counter[str] = Counter()
        self._leaving: dict[Token, asyncio.TimerHandle] = {}

    async def start(self, tenant: str, start: Start, outgoing: Outgoing) -> Camera:
        """A new camera that sends to this client; raises a refusal if there are too many."""
        grammar = grammar_of(start.json_schema, self._limits)
        if grammar is not None:
            await self._decoder.check_grammar(tenant, grammar)
        if start.compare and self._bare is None:
            raise bad_request(
                "this server has no engine to compare with: start it with --compare, or leave"
                " compare out"
            )
        if len(self._cameras) >= self._limits.max_live:
            metrics.TURNED_AWAY.labels("full").inc()
            raise too_much("too many live cameras are connected")
        if self._of_tenant[tenant] >= self._limits.max_tenant_live:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your live cameras are connected")
        self._entrance.memory.admit()
        key, manner = StreamKey(tenant, start.stream), Manner(start.system)
        session = Session(self._target, self._loop, key, manner)
        gate = Gate(tenant, self._entrance, self._decoder, self._room, self._limits)
        bare = self._bare.session(start.stream, tenant, manner) if self._bare else None
        camera = Camera(gate, session, start, self._on_failure, bare)
        self._cameras[_name(tenant, camera.token)] = camera
        self._count(tenant, 1)
        camera.attach(outgoing, 0, is_new=True)
        return camera

    def resume(self, tenant: str, resume: Resume, outgoing: Outgoing) -> Camera:
        """The camera of a broken connection, which sends to this client now."""
        name = _name(tenant, resume.token)
        camera = self._cameras.get(name)
        if camera is None:
            raise bad_request(
                "there is no such camera to resume: it ended, or its client was away for longer"
                f" than {self._limits.live_resume_s:g} s; start again"
            )
        camera.attach(outgoing, resume.number, is_new=False)
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()
        return camera

    def leave(self, camera: Camera, outgoing: Outgoing, *, is_complete: bool) -> None:
        """A client's connection is gone; the camera waits for it, unless it has everything."""
        if not camera.detach(outgoing):
            return  # another connection has it
        name = _name(camera.tenant, camera.token)
        if is_complete or camera.is_done:
            self._remove(name)
        elif name in self._cameras:
            loop = asyncio.get_running_loop()
            delay_s = self._limits.live_resume_s
            self._leaving[name] = loop.call_later(delay_s, self._remove, name)

    def remove(self, camera: Camera) -> None:
        """End a camera now."""
        self._remove(_name(camera.tenant, camera.token))

    async def drain(self) -> None:
        """Give the answers under way, and end every camera."""
        await asyncio.gather(*(camera.drain() for camera in self._cameras.values()))

    def close(self) -> None:
        """End every camera now."""
        for name in list(self._cameras):
            self._remove(name)

    def _remove(self, name: Token) -> None:
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()
        if (camera := self._cameras.pop(name, None)) is not None:
            self._count(camera.tenant, -1)
            camera.close()

    def _count(self, tenant: str, by: int) -> None:
        self._of_tenant[tenant] += by
        metrics.count_cameras(tenant, self._of_tenant[tenant], len(self._cameras))
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]


def _name(tenant: str, token: str) -> Token:
    # A tenant's name may hold anything, so its length comes first.
    return hashlib.sha256(f"{len(tenant)}:{tenant}:{token}".encode()).digest()
