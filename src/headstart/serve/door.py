"""The way in: every request passes here, and most of them on to vLLM.

Whose it is, whether there is room, what it may name; then vLLM answers, and what came of it is
noted. A request that is not let in costs nothing behind this door.
"""

import asyncio
import contextlib
import json
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from headstart.serve import figures, guard, pressure
from headstart.serve.answering import Answering
from headstart.serve.crowd import Crowd, Place
from headstart.serve.demo import Demo
from headstart.serve.guard import UPLOADS, Kind, Route, find_route, other_methods
from headstart.serve.heartbeat import Heartbeat
from headstart.serve.keys import EVERYBODY, Caller, KeyFile
from headstart.serve.logbook import Logbook
from headstart.serve.page import PAGE, PAGE_HEADERS
from headstart.serve.passage import ClientLeftError, Passage
from headstart.serve.pressure import Pressure
from headstart.serve.quota import Quota
from headstart.serve.refusal import (
    App,
    Message,
    Receive,
    RefusedError,
    Scope,
    Send,
    send_json,
    send_whole,
)
from headstart.serve.schema import open_schema
from headstart.serve.settings import Settings

REFUSAL_S = 5.0
"""A client may take to read that it is refused."""


class Door:
    """An ASGI application in front of vLLM's. Made in an event loop and used from it only."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        answering: Answering,
        logbook: Logbook,
        quota: Quota,
        heartbeat: Heartbeat,
    ) -> None:
        self._app = app
        self._settings = settings
        self._answering = answering
        self._logbook = logbook
        self._demo = Demo(settings.demo)
        self._keys = KeyFile(
            settings.keys, settings.path, lambda said: logbook.note(event="keys", said=said)
        )
        self._pressure = Pressure(settings.limits.min_free_bytes, pressure.free_bytes)
        self._quota = quota
        self._heartbeat = heartbeat
        self._listening = asyncio.create_task(heartbeat.listen())
        self._schema = b""
        self.crowd = Crowd(settings.limits)
        figures.state_limits(settings.limits)
        figures.FREE_BYTES.set_function(lambda: self._pressure.free_bytes)
        figures.HEARTBEAT_AGE.set_function(lambda: heartbeat.age_s)
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="requests")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        passage = Passage(scope, receive, send, lambda: self._answering.engine_is_dead)
        try:
            async with asyncio.timeout(self._settings.limits.request_s):
                await self._let_in(passage)
        except RefusedError as refusal:
            await self._refuse(passage, refusal)
        except TimeoutError:
            limit = f"the answer took longer than {self._settings.limits.request_s:.0f} s"
            await self._refuse(passage, RefusedError(HTTPStatus.GATEWAY_TIMEOUT, limit))
        except ClientLeftError:
            passage.details["left"] = True
        except Exception as error:
            # Nothing of it is the client's business but the id under which it is in the log.
            self._logbook.note(
                event="error",
                request_id=passage.request_id,
                error=repr(error),
                trace=traceback.format_exc(),
            )
            message = "the server failed; its log has the cause under this request's id"
            await self._refuse(passage, RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message))
        finally:
            self._note(passage)

    async def _let_in(self, passage: Passage) -> None:
        method, path = passage.scope["method"], passage.scope["path"]
        route = find_route(method, path)
        if route is None:
            if methods := other_methods(path):
                allowed = f"this route takes {', '.join(methods)}"
                raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, allowed)
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such route; see /openapi.json")
        caller = self._caller(passage)
        passage.tenant = caller.name if caller is not None and caller.may_ask else ""
        if route.kind is Kind.OPEN:
            await self._pass(passage, route, caller)
            return
        if caller is None:
            figures.TURNED_AWAY.labels("key").inc()
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED, "give a key: the header Authorization: Bearer KEY"
            )
        if route.kind is Kind.KEYED:
            await self._pass(passage, route, caller)
            return
        if not caller.may_ask:
            passage.details["operator"] = caller.name
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "an operator's key only shows figures; ask with a tenant's"
            )
        with self.crowd.joined(passage.tenant) as place:
            self._pressure.admit()
            self._quota.admit(passage.tenant)
            await self._work(passage, route, place)

    def _caller(self, passage: Passage) -> Caller | None:
        """Who asks; none without a key that opens."""
        if self._settings.open:
            return EVERYBODY
        return self._keys.keys.caller(passage.header(b"authorization"))

    async def _work(self, passage: Passage, route: Route, place: Place) -> None:
        """What takes a place among the requests under way."""
        body = await self._body(passage, place)
        name = passage.scope["path"].rpartition("/")[2]
        send, ok = passage.send, HTTPStatus.OK
        if not route.ours:
            await self._answering.answer(passage, body, self._threads, route.path)
        elif route.method == "POST":
            await self._upload(passage, body)
        elif route.method == "DELETE":
            self._answering.library.remove(passage.tenant, name)
            await send_json(send, ok, {"id": name, "deleted": True})
        elif route.path.startswith(guard.DEMO):
            await send_whole(send, ok, *self._demo.file(name))
        else:
            picture = await self._answering.film(passage.tenant, name, self._threads)
            await send_whole(send, ok, b"image/png", picture)

    async def _body(self, passage: Passage, place: Place) -> bytes:
        """All of it; what has arrived counts while it arrives."""
        limits, receive, arrived = self._settings.limits, passage.receive, 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            # What is longer than one body may be is not kept.
            place.hold(min(arrived, limits.max_body_bytes))
            return message

        passage.receive = counted
        try:
            async with asyncio.timeout(limits.body_s):
                return await passage.body(limits)
        except TimeoutError as error:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive; send it again"
            ) from error

    async def _pass(self, passage: Passage, route: Route, caller: Caller | None) -> None:
        sees_all = caller is not None and caller.sees_all
        if route.path == guard.MODELS and not self._settings.open:
            await self._tell_models(passage)
            return
        if route.path == guard.METRICS and not sees_all:
            text = figures.TenantFigures(passage.tenant).text()
            await send_whole(passage.send, HTTPStatus.OK, CONTENT_TYPE_LATEST.encode(), text)
            return
        if not route.ours:
            scope, receive = passage.onward(b"")
            await self._app(scope, receive, passage.send)
            return
        send, ok = passage.send, HTTPStatus.OK
        match route.path:
            case "/":
                await send_whole(send, ok, b"text/html; charset=utf-8", PAGE, PAGE_HEADERS)
            case "/ready":
                await self._tell_readiness(passage, caller)
            case "/openapi.json":
                # Made once: strangers may ask for it as often as they like.
                self._schema = self._schema or _schema(passage.scope)
                await send_whole(send, ok, b"application/json", self._schema)
            case _:
                await send_json(send, ok, self._demo.listing())

    async def _upload(self, passage: Passage, body: bytes) -> None:
        name = self._answering.keep(passage.tenant, body, passage.query("format"))
        content = {"id": name, "object": "headstart.events", "bytes": len(body)}
        await send_json(
            passage.send,
            HTTPStatus.CREATED,
            content,
            [(b"location", f"{UPLOADS}/{name}".encode())],
        )

    async def _tell_models(self, passage: Passage) -> None:
        """vLLM's list; tenants are not told where on the disk the models lie."""
        said: list[Message] = []

        async def keep(message: Message) -> None:
            said.append(message)

        scope, receive = passage.onward(b"")
        await self._app(scope, receive, keep)
        content = json.loads(b"".join(message.get("body", b"") for message in said))
        for model in content.get("data", ()):
            model["root"] = model["id"]
        await send_json(passage.send, HTTPStatus(said[0]["status"]), content)

    async def _tell_readiness(self, passage: Passage, caller: Caller | None) -> None:
        engine = await self._engine_state()
        decoders, short = self._answering.decoders_state, self._pressure.is_high
        ready = engine == decoders == "up" and not self.crowd.draining and not short
        content: dict[str, object] = {"ready": ready}
        if caller is not None:
            crowd, name = self.crowd, caller.name
            content |= {
                "engine": engine,
                "decoders": decoders,
                "drafter": self._answering.drafter_state,
                "draining": crowd.draining,
                "short_of_memory": short,
                "in_flight": crowd.size if caller.sees_all else crowd.size_of(name),
            }
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        await send_json(passage.send, status, content)

    async def _engine_state(self) -> str:
        """For people: up, down or hung."""
        if not await self._answering.engine_is_healthy():
            return "down"
        return "up" if self._heartbeat.is_heard else "hung"

    async def _refuse(self, passage: Passage, refusal: RefusedError) -> None:
        passage.details["refused"] = refusal.message
        # Whoever does not read what was sent before does not read this either.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REFUSAL_S):
                if not passage.started:
                    await refusal.send(passage.send)
                elif passage.streams:
                    data = f"data: {json.dumps(refusal.content())}\n\ndata: [DONE]\n\n".encode()
                    await passage.raw_send({"type": "http.response.body", "body": data})

    def _note(self, passage: Passage) -> None:
        figures.count_request(passage.tenant, passage.status)
        figures.LOG_LINES_DROPPED.set(self._logbook.num_dropped)
        scope = passage.scope
        line: dict[str, Any] = {
            "event": "request",
            "request_id": passage.request_id,
            "client_request_id": passage.header(b"x-request-id")[:64] or None,
            "tenant": passage.tenant or None,
            "method": scope["method"],
            "path": scope["path"][:256],
            "status": passage.status,
            "ms": round((time.monotonic() - passage.received_s) * 1e3, 1),
            "bytes": passage.num_bytes,
        }
        self._logbook.note(**{k: v for k, v in line.items() if v is not None}, **passage.details)

    def close(self) -> None:
        """Let the threads go."""
        self._listening.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _schema(scope: Scope) -> bytes:
    return json.dumps(open_schema(scope["app"].openapi())).encode()
