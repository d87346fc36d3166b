"""The route of live sockets: who may open one, and what is logged of it."""

import asyncio
import contextlib
import time
from collections import Counter
from http import HTTPStatus

from headstart_client.wire import KEY_PREFIX, PATH, SUBPROTOCOL
from headstart_server import metrics
from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission, check_page, require_key, require_tenant
from headstart_server.asgi import Message, Receive, Scope, Send
from headstart_server.delays import Delays
from headstart_server.live.cameras import SocketCameras
from headstart_server.live.socket import LiveSocket
from headstart_server.refusal import RefusedError, bad_request, too_much
from headstart_server.request_context import RequestContext
from headstart_server.settings import Settings

RESPONSE = "websocket.http.response"
"""The extension of ASGI by which a refused handshake is answered with a status and a text."""
NUM_FREE = 10
"""Refused sockets of a tenant at once after which nobody waits yet."""
EACH_S = 2.0
"""One more is free after each such time."""
LONGEST_S = 4.0
"""No handshake waits longer, and no tenant owes more than that."""


class LiveRoute:
    """An ASGI application for sockets. Used from one event loop only."""

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        cameras: SocketCameras | None,
        access_log: AccessLog,
    ) -> None:
        """Without ``cameras`` the target looks at no video, and every socket is refused."""
        self._settings, self._limits = settings, settings.limits
        self._admission, self._cameras, self._access_log = admission, cameras, access_log
        self._opening: Counter[str] = Counter()
        """Sockets that have not said which camera they are, of each tenant."""
        # A refused socket has cost a handshake, and often a camera that had just begun, and counts
        # as no request: without a wait a client could repeat it as fast as it connects.
        self._backoff = Delays(NUM_FREE, EACH_S, LONGEST_S)
        self._sockets: dict[LiveSocket, asyncio.Task[None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = RequestContext(scope, receive, send, lambda: False)
        await receive()  # websocket.connect
        try:
            cameras = self._check(context)
        except RefusedError as refusal:
            context.status = refusal.status
            context.details["refused"] = refusal.message
            await self._admission.delays.refuse(context)
            await _refuse(scope, send, refusal)
            self._log(context)
            return
        # A socket may last for days, in which its key may be revoked.
        socket = LiveSocket(context, cameras, self._limits, lambda: self._check_key(context))
        task = asyncio.ensure_future(self._serve(context, socket))
        self._sockets[socket] = task
        try:
            await task
        except Exception as error:
            self._access_log.note_error(error, request_id=context.request_id)
            raise
        finally:
            del self._sockets[socket]
            self._log(context)

    async def drain(self) -> None:
        """Give the answers under way to every camera, and close its socket."""
        for socket in self._sockets:
            socket.stop()
        if self._cameras is not None:
            await self._cameras.drain()
        if self._sockets:
            await asyncio.wait(self._sockets.values())

    def close(self) -> None:
        if self._cameras is not None:
            self._cameras.close()

    async def _serve(self, context: RequestContext, socket: LiveSocket) -> None:
        tenant = context.tenant
        context.status = HTTPStatus.SWITCHING_PROTOCOLS
        self._opening[tenant] += 1
        with contextlib.ExitStack() as opening:
            opening.callback(self._opened, tenant)
            try:
                if (wait_s := self._backoff.wait_s(tenant)) > 0:
                    context.details["delayed_s"] = round(wait_s, 1)
                    await socket.delay(wait_s)
                await socket.serve(opening.close)
            finally:
                if socket.was_refused:
                    self._backoff.charge(tenant)

    def _opened(self, tenant: str) -> None:
        self._opening -= Counter((tenant,))

    def _check(self, context: RequestContext) -> SocketCameras:
        """Raise a refusal unless this socket may be opened."""
        scope = context.scope
        check_page(self._settings, context)
        if scope["path"] != PATH:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"the only socket of this server is {PATH}")
        context.tenant = context.caller = tenant = self._tenant(context)
        if SUBPROTOCOL not in scope["subprotocols"]:
            raise bad_request(f"name the subprotocol {SUBPROTOCOL}")
        if self._cameras is None:
            raise RefusedError(
                HTTPStatus.NOT_IMPLEMENTED, "this server's model looks at no video; ask over HTTP"
            )
        self._admission.requests.check_not_draining()
        self._admission.memory.admit()
        if self._opening[tenant] >= self._limits.max_tenant_live:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your connections have not said which camera they are")
        return self._cameras

    def _tenant(self, context: RequestContext) -> str:
        """Whose key the handshake holds; raises a refusal if it is no tenant's, as of now."""
        authorization = context.header(b"authorization")
        if not authorization:
            given = (name for name in context.scope["subprotocols"] if name.startswith(KEY_PREFIX))
            authorization = f"Bearer {next(given, '').removeprefix(KEY_PREFIX)}"
        ways = f", or the subprotocol {KEY_PREFIX}KEY"
        caller = require_key(self._admission.caller(authorization), ways)
        require_tenant(caller, context)
        return caller.name

    def _check_key(self, context: RequestContext) -> None:
        """Raise a refusal unless the key of an open socket is still the same tenant's."""
        if self._tenant(context) != context.tenant:
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "the key is another tenant's now")

    def _log(self, context: RequestContext) -> None:
        metrics.count_request(context.tenant, context.status)
        self._access_log.note(
            event="live",
            request_id=context.request_id,
            tenant=context.tenant or None,
            path=context.scope["path"][:256],
            status=int(context.status),
            ms=round((time.monotonic() - context.received_s) * 1e3, 1),
            bytes=context.num_bytes,
            **context.details,
        )


async def _refuse(scope: Scope, send: Send, refusal: RefusedError) -> None:
    if RESPONSE not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
        return

    async def respond(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await refusal.send(respond)
