"""The routes of cameras that the server reads: registering one, its state, its answers, its end."""

from collections import Counter
from http import HTTPStatus

from headstart_server import metrics
from headstart_server.admission import Admission
from headstart_server.asgi import send_json, send_whole
from headstart_server.live.answer_stream import AnswerStream
from headstart_server.live.cameras import CameraRegistry
from headstart_server.live.messages import read_registration
from headstart_server.refusal import RefusedError, bad_request, too_much
from headstart_server.request_context import RequestContext
from headstart_server.routes import CAMERA_ANSWERS, CAMERA_PICTURE, CAMERAS, Route
from headstart_server.settings import Settings


class CameraRoutes:
    """Answers requests whose tenant is known. Used from one event loop only."""

    def __init__(
        self, settings: Settings, admission: Admission, registry: CameraRegistry | None
    ) -> None:
        """Without a ``registry`` the target looks at no video, and every request is refused."""
        self._settings, self._admission, self._registry = settings, admission, registry
        self._readers: Counter[str] = Counter()
        """Streams of answers, of each tenant."""

    async def answer(self, context: RequestContext, route: Route, body: bytes = b"") -> None:
        if self._registry is None:
            raise RefusedError(
                HTTPStatus.NOT_IMPLEMENTED, "this server's model looks at no video; ask over HTTP"
            )
        registry, tenant, send = self._registry, context.tenant, context.send
        id = context.scope["path"].removeprefix(CAMERAS).partition("/")[2].partition("/")[0]
        match route.method, route.path:
            case "POST", _:
                wanted = read_registration(body, self._settings.limits)
                camera = await registry.register(tenant, wanted)
                where = [(b"location", f"{CAMERAS}/{camera.id}".encode())]
                await send_json(send, HTTPStatus.CREATED, camera.described(), where)
            case "DELETE", _:
                registry.remove(tenant, id)
                await send_json(send, HTTPStatus.OK, {"id": id, "deleted": True})
            case _, path if path == CAMERAS:
                listed = [camera.described() for camera in registry.of(tenant)]
                await send_json(send, HTTPStatus.OK, {"object": "list", "data": listed})
            case _, path if path == CAMERA_PICTURE:
                picture = await registry.find(tenant, id).picture()
                headers = [(b"cache-control", b"no-store")]
                await send_whole(send, HTTPStatus.OK, b"image/jpeg", picture, headers)
            case _, path if path == CAMERA_ANSWERS:
                await self._stream(context, registry, id)
            case _:
                await send_json(send, HTTPStatus.OK, registry.find(tenant, id).described())

    async def _stream(self, context: RequestContext, registry: CameraRegistry, id: str) -> None:
        tenant = context.tenant
        if context.scope["method"] == "HEAD":
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "this route takes GET")
        number = _last_number(context)
        camera = registry.find(tenant, id)
        # Twice as many as cameras: a reader that comes back is let in before the old one is gone.
        if self._readers[tenant] >= 2 * self._settings.limits.max_tenant_live:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your connections read answers")
        self._readers[tenant] += 1
        try:
            await AnswerStream(context, camera, lambda: self._check_key(context)).serve(number)
        finally:
            self._readers -= Counter((tenant,))

    def _check_key(self, context: RequestContext) -> None:
        """Raise a refusal unless the key of a stream is still the same tenant's."""
        caller = self._admission.caller(context.header(b"authorization"))
        if caller is None or not caller.may_ask or caller.name != context.tenant:
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "the key is not valid any more")


def _last_number(context: RequestContext) -> int:
    """The number of the last answer that a reader has; 0 if it has none."""
    given = context.header(b"last-event-id") or "0"
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise bad_request("Last-Event-ID is the number of the last answer that has arrived")
    return int(given)
