"""The way in: every request passes here, and most of them on to vLLM.

Whose it is, whether there is room, what it may name; then vLLM answers, and what came of it is
noted. A request that is not let in costs nothing behind this door.
"""

import asyncio
import json
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from headstart.serve import figures, guard
from headstart.serve.answering import Answering
from headstart.serve.crowd import Crowd
from headstart.serve.demo import Demo
from headstart.serve.guard import UPLOADS, Kind, Route, find_route, other_methods
from headstart.serve.logbook import Logbook
from headstart.serve.page import PAGE, PAGE_HEADERS
from headstart.serve.passage import ClientLeftError, Passage
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


class Door:
    """An ASGI application in front of vLLM's. Used from one event loop only."""

    def __init__(
        self, app: App, settings: Settings, answering: Answering, logbook: Logbook
    ) -> None:
        self._app = app
        self._settings = settings
        self._answering = answering
        self._logbook = logbook
        self._demo = Demo(settings.demo)
        self.crowd = Crowd(settings.limits)
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
        keys = self._settings.keys
        if keys.needed and route.kind is not Kind.OPEN:
            tenant = keys.tenant(passage.header(b"authorization"))
            if tenant is None:
                figures.TURNED_AWAY.labels("key").inc()
                raise RefusedError(
                    HTTPStatus.UNAUTHORIZED, "give a key: the header Authorization: Bearer KEY"
                )
            passage.tenant = tenant
        if route.kind is not Kind.COUNTED:
            await self._pass(passage, route)
            return
        with self.crowd.joined(passage.tenant):
            try:
                async with asyncio.timeout(self._settings.limits.body_s):
                    body = await passage.body(self._settings.limits)
            except TimeoutError as error:
                raise RefusedError(
                    HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive; send it again"
                ) from error
            if route.ours:
                await self._upload(passage, body)
            else:
                await self._answering.answer(passage, body, self._threads, route.path)

    async def _pass(self, passage: Passage, route: Route) -> None:
        if route.path == guard.MODELS and self._settings.keys.needed:
            await self._tell_models(passage)
            return
        if not route.ours:
            await self._app(passage.scope, passage.receive, passage.send)
            return
        send, ok, name = passage.send, HTTPStatus.OK, passage.scope["path"].rpartition("/")[2]
        match route.method, route.path:
            case _, "/":
                await send_whole(send, ok, b"text/html; charset=utf-8", PAGE, PAGE_HEADERS)
            case _, "/ready":
                await self._tell_readiness(send)
            case _, "/openapi.json":
                await send_json(send, ok, open_schema(passage.scope["app"].openapi()))
            case _, guard.DEMO:
                await send_json(send, ok, self._demo.listing())
            case "DELETE", _:
                self._answering.library.remove(passage.tenant, name)
                await send_json(send, ok, {"id": name, "deleted": True})
            case _, path if path.startswith(guard.DEMO):
                await send_whole(send, ok, *self._demo.file(name))
            case _:
                picture = await self._answering.film(passage.tenant, name, self._threads)
                await send_whole(send, ok, b"image/png", picture)

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

        await self._app(passage.scope, passage.receive, keep)
        content = json.loads(b"".join(message.get("body", b"") for message in said))
        for model in content.get("data", ()):
            model["root"] = model["id"]
        await send_json(passage.send, HTTPStatus(said[0]["status"]), content)

    async def _tell_readiness(self, send: Send) -> None:
        alive = await self._answering.engine_is_healthy()
        ready = alive and not self.crowd.draining
        content = {
            "ready": ready,
            "engine": "up" if alive else "down",
            "drafter": self._answering.drafter_state,
            "draining": self.crowd.draining,
            "in_flight": self.crowd.size,
        }
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        await send_json(send, status, content)

    async def _refuse(self, passage: Passage, refusal: RefusedError) -> None:
        passage.details["refused"] = refusal.message
        if not passage.started:
            await refusal.send(passage.send)
        elif passage.streams:
            data = f"data: {json.dumps(refusal.content())}\n\ndata: [DONE]\n\n".encode()
            await passage.raw_send({"type": "http.response.body", "body": data})

    def _note(self, passage: Passage) -> None:
        figures.REQUESTS.labels(str(passage.status)).inc()
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
        self._threads.shutdown(wait=False, cancel_futures=True)
