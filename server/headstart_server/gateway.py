"""The gateway in front of vLLM's application: every request passes through it.

It authenticates the client, admits the request, has vLLM or one of its own routes answer it, and
logs it. A refused request never reaches vLLM.
"""

import asyncio
import contextlib
import json
import time
from http import HTTPStatus
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from headstart_server import metrics, routes
from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission, Slot, check_page, require_key, require_tenant
from headstart_server.answering import Answering
from headstart_server.asgi import App, Message, Receive, Scope, Send, send_json, send_whole
from headstart_server.auth import Caller
from headstart_server.live.camera_routes import CameraRoutes
from headstart_server.memory.routes import MemoryRoutes
from headstart_server.page import LIVE_PAGE, PAGE, PAGE_HEADERS, Demo
from headstart_server.readiness import Readiness
from headstart_server.refusal import RefusedError
from headstart_server.request_context import ClientDisconnectedError, RequestContext
from headstart_server.routes import Access, Route, find_route, methods_of, without_stream
from headstart_server.schema import openapi_schema
from headstart_server.settings import Settings
from headstart_server.upload_routes import UploadRoutes

REFUSAL_S = 5.0
"""How long a client may take to read a refusal."""


class Gateway:
    """An ASGI application in front of vLLM's. Made in an event loop and used from it only."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        answering: Answering,
        access_log: AccessLog,
        admission: Admission,
        readiness: Readiness,
        uploads: UploadRoutes,
        cameras: CameraRoutes,
        memory: MemoryRoutes,
    ) -> None:
        self._app = app
        self._settings = settings
        self._answering = answering
        self._access_log = access_log
        self._demo = Demo(settings.demo, compares=settings.compare)
        self.admission = admission
        self._readiness = readiness
        self._uploads, self._cameras, self._memory = uploads, cameras, memory
        self._schema = b""
        metrics.state_limits(settings.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope, stream = without_stream(scope)
        context = RequestContext(
            scope, receive, send, lambda: self._readiness.engine_is_dead, stream=stream
        )
        try:
            async with asyncio.timeout(self._settings.limits.request_s) as time_limit:
                await self._dispatch(context, time_limit)
        except RefusedError as refusal:
            await self._refuse(context, refusal)
        except TimeoutError:
            limit = f"the answer took longer than {self._settings.limits.request_s:.0f} s"
            await self._refuse(context, RefusedError(HTTPStatus.GATEWAY_TIMEOUT, limit))
        except ClientDisconnectedError:
            context.details["left"] = True
        except Exception as error:
            # The client gets only the request's id, under which the log has the error.
            self._access_log.note_error(error, request_id=context.request_id)
            message = "the server failed; its log has the cause under this request's id"
            await self._refuse(context, RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message))
        finally:
            self._log(context)

    async def _dispatch(self, context: RequestContext, time_limit: asyncio.Timeout) -> None:
        check_page(self._settings, context)
        route = _route_of(context)
        caller = self.admission.caller(context.header(b"authorization"))
        context.tenant = caller.name if caller is not None and caller.may_ask else ""
        context.caller = caller.name if caller is not None else ""
        if route.access is not Access.ADMITTED and (caller or route.access is Access.PUBLIC):
            await self.admission.delays.answer(context)
        if route.access is Access.PUBLIC:
            await self._answer_directly(context, route, caller)
            return
        caller = require_key(caller)
        if route.access is Access.AUTHENTICATED:
            await self._answer_directly(context, route, caller)
            return
        require_tenant(caller, context)
        if route.access is Access.TENANT:
            if route.path == routes.CAMERA_ANSWERS:
                time_limit.reschedule(None)  # a stream lasts for as long as it is read
            await self._cameras.answer(context, route)
            return
        with self.admission.admit(context.tenant) as slot:
            await self._answer_admitted(context, route, slot)

    async def _answer_admitted(self, context: RequestContext, route: Route, slot: Slot) -> None:
        body = await self._body(context, slot)
        if not route.ours:
            await self._answering.answer(context, body, route.path)
        elif route.path.startswith(routes.CAMERAS):
            await self._cameras.answer(context, route, body)
        elif route.path.startswith(routes.MEMORY):
            await self._memory.answer(context, route, body)
        elif route.path.startswith(routes.UPLOADS):
            await self._uploads.answer(context, route, body)
        else:
            file = self._demo.file(context.scope["path"].rpartition("/")[2])
            await send_whole(context.send, HTTPStatus.OK, *file)

    async def _body(self, context: RequestContext, slot: Slot) -> bytes:
        limits = self._settings.limits
        try:
            async with asyncio.timeout(limits.body_s):
                return await context.body(limits.max_body_bytes, slot.set_body_bytes)
        except TimeoutError as error:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive; send it again"
            ) from error

    async def _answer_directly(
        self, context: RequestContext, route: Route, caller: Caller | None
    ) -> None:
        sees_all = caller is not None and caller.sees_all
        if route.path == routes.MODELS:
            await self._send_models(context)
            return
        if route.path == routes.METRICS and not sees_all:
            text = metrics.TenantMetrics(context.tenant).text()
            await send_whole(context.send, HTTPStatus.OK, CONTENT_TYPE_LATEST.encode(), text)
            return
        if not route.ours:
            scope, receive = context.onward(b"")
            await self._app(scope, receive, context.send)
            return
        send, ok = context.send, HTTPStatus.OK
        match route.path:
            case "/":
                await send_whole(send, ok, b"text/html; charset=utf-8", PAGE, PAGE_HEADERS)
            case "/live":
                await send_whole(send, ok, b"text/html; charset=utf-8", LIVE_PAGE, PAGE_HEADERS)
            case "/ready":
                state = await self._readiness.state(caller)
                status = ok if state["ready"] else HTTPStatus.SERVICE_UNAVAILABLE
                await send_json(send, status, state)
            case "/openapi.json":
                # Made once: the route needs no key, so it may be asked for often.
                self._schema = self._schema or _schema(context.scope)
                await send_whole(send, ok, b"application/json", self._schema)
            case _:
                await send_json(send, ok, self._demo.listing())

    async def _send_models(self, context: RequestContext) -> None:
        """Send vLLM's list of models without their paths on the disk."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        scope, receive = context.onward(b"")
        await self._app(scope, receive, keep)
        content = json.loads(b"".join(message.get("body", b"") for message in messages))
        for model in content.get("data", ()):
            model["root"] = model["id"]
        await send_json(context.send, HTTPStatus(messages[0]["status"]), content)

    async def _refuse(self, context: RequestContext, refusal: RefusedError) -> None:
        context.details["refused"] = refusal.message
        if not context.started:
            await self.admission.delays.refuse(context)
        # A client that has stopped reading does not read the refusal either.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REFUSAL_S):
                if not context.started:
                    await refusal.send(context.send)
                elif context.streams:
                    data = f"data: {json.dumps(refusal.content())}\n\ndata: [DONE]\n\n".encode()
                    await context.raw_send({"type": "http.response.body", "body": data})

    def _log(self, context: RequestContext) -> None:
        metrics.count_request(context.tenant, context.status)
        metrics.LOG_LINES_DROPPED.set(self._access_log.num_dropped)
        scope = context.scope
        line: dict[str, Any] = {
            "event": "request",
            "request_id": context.request_id,
            "client_request_id": context.header(b"x-request-id")[:64] or None,
            "tenant": context.tenant or None,
            "method": scope["method"],
            "path": scope["path"][:256],
            "status": context.status,
            "ms": round((time.monotonic() - context.received_s) * 1e3, 1),
            "bytes": context.num_bytes,
        }
        self._access_log.note(**{k: v for k, v in line.items() if v is not None}, **context.details)


def _route_of(context: RequestContext) -> Route:
    method, path = context.scope["method"], context.scope["path"]
    route = find_route(method, path)
    if route is not None:
        return route
    if methods := methods_of(path):
        allowed = f"this route takes {', '.join(methods)}"
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, allowed)
    raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such route; see /openapi.json")


def _schema(scope: Scope) -> bytes:
    return json.dumps(openapi_schema(scope["app"].openapi())).encode()
