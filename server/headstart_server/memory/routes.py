"""The routes over which a tenant sees, takes along, brings and forgets what is remembered of it.

All of them are about the tenant whose key is given, and about no other.
"""

import asyncio
from http import HTTPStatus

from headstart.speculation.drafter import StreamKey
from headstart_server.asgi import send_json, send_whole
from headstart_server.memory.seal import SealError
from headstart_server.memory.store import StoreError
from headstart_server.memory.store_sync import MemoryStoreSync
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.request_context import RequestContext
from headstart_server.routes import MEMORY_EXPORT, MEMORY_IMPORT, Route
from headstart_server.settings import Settings

MAX_NAME_CHARACTERS = 128
BYTES_A_TOKEN = 4
"""Of an exported memory."""
DEFAULT_LISTED, MAX_LISTED = 100, 1000
"""Streams in one answer."""


class MemoryRoutes:
    """Answers requests whose tenant is known. Used from one event loop only."""

    def __init__(self, settings: Settings, quota: Quota, memory: MemoryStoreSync | None) -> None:
        """Without a ``memory`` nothing is drafted, and so nothing is remembered."""
        self._settings, self._quota, self._memory = settings, quota, memory

    async def answer(self, context: RequestContext, route: Route, body: bytes) -> None:
        if self._memory is None:
            nothing = "this server drafts nothing, and so it remembers nothing"
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, nothing)
        if (wait_s := self._quota.memory_wait_s(context.tenant)) > 0:
            context.details["delayed_s"] = round(wait_s, 1)
            await asyncio.sleep(wait_s)
        try:
            await self._answer(self._memory, context, route, body)
        except StoreError as error:
            away = "the store of memories is away, so this is not done; ask again"
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, away, retry_after_s=5) from error

    async def _answer(
        self, memory: MemoryStoreSync, context: RequestContext, route: Route, body: bytes
    ) -> None:
        send = context.send
        if route.path == MEMORY_EXPORT:
            self._check_keys()
            data = await memory.export(self._stream(context))
            if data is None:
                raise RefusedError(HTTPStatus.NOT_FOUND, "nothing is remembered of this stream")
            self._quota.charge_memory(context.tenant, len(data) // BYTES_A_TOKEN)
            await send_whole(send, HTTPStatus.OK, b"application/octet-stream", data)
        elif route.path == MEMORY_IMPORT:
            self._check_keys()
            stream = self._stream(context)
            try:
                opened, num_tokens = await memory.take(stream, body)
            except SealError as error:
                raise bad_request(str(error)) from error
            self._quota.charge_memory(context.tenant, num_tokens)
            content = {
                "stream": stream.stream,
                "from": opened.stream.stream,
                "answers": opened.snapshot.num_answers,
            }
            await send_json(send, HTTPStatus.OK, content)
        elif route.method == "DELETE":
            await self._forget(memory, context)
        else:
            after, num_listed = context.query("cursor"), _num_listed(context)
            rows, cursor = await memory.streams(context.tenant, after, num_listed)
            keep_days = self._settings.memory.keep_days
            content = {"object": "list", "data": rows, "cursor": cursor, "keep_days": keep_days}
            await send_json(send, HTTPStatus.OK, content)

    async def _forget(self, memory: MemoryStoreSync, context: RequestContext) -> None:
        if context.query("all") == "true" and context.query("stream") is None:
            await memory.forget_tenant(context.tenant)
            content: dict[str, object] = {"all": True, "deleted": True}
        else:
            stream = self._stream(context)
            await memory.forget(stream)
            content = {"stream": stream.stream, "deleted": True}
        await send_json(context.send, HTTPStatus.OK, content)

    def _stream(self, context: RequestContext) -> StreamKey:
        name = context.query("stream") or context.stream
        if not name or len(name) > MAX_NAME_CHARACTERS:
            raise bad_request("name one stream: ?stream=NAME")
        return StreamKey(context.tenant, name)

    def _check_keys(self) -> None:
        if not self._settings.memory.keys:
            raise RefusedError(
                HTTPStatus.NOT_IMPLEMENTED,
                "no memory leaves this server or comes in: its operator sets key_file under"
                " [memory]",
            )


def _num_listed(context: RequestContext) -> int:
    given = context.query("limit")
    if given is None:
        return DEFAULT_LISTED
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= MAX_LISTED):
        raise bad_request(f"limit is a number from 1 to {MAX_LISTED}")
    return int(given)
