"""More in an answer's ``usage`` than vLLM counts; the rest of the answer passes as it is."""

from collections.abc import Awaitable, Callable
from typing import Any

from headstart_server.asgi import Message, Send, is_event_stream
from headstart_server.response import edited, resized

_DATA = b"data: "


class UsageDetails:
    """Adds to ``usage.completion_tokens_details`` of one response on its way out.

    ``count`` is asked once the answer is complete. In a stream only the chunk that holds nothing
    but the usage is changed, which clients ask for with ``stream_options.include_usage``.
    """

    def __init__(self, send: Send, count: Callable[[], Awaitable[dict[str, int]]]) -> None:
        self._send = send
        self._count = count
        self._start: Message | None = None
        self._buffer = b""

    async def send(self, message: Message) -> None:
        """What vLLM sends, in vLLM's place."""
        if message["type"] == "http.response.start":
            if is_event_stream(message):
                await self._send(message)
            else:
                self._start = message  # its length is not known yet
            return
        self._buffer += message.get("body", b"")
        more = message.get("more_body", False)
        if self._start is None:
            await self._pass_events(more)
        elif not more:
            body = await self._counted(self._buffer)
            await self._send(resized(self._start, body))
            await self._send({"type": "http.response.body", "body": body})

    async def _pass_events(self, more: bool) -> None:
        *events, rest = self._buffer.split(b"\n\n")
        self._buffer = rest if more else b""
        told = [await self._told(event) + b"\n\n" for event in events]
        if told or not more:
            body = b"".join(told) + (b"" if more else rest)
            await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _told(self, event: bytes) -> bytes:
        if not event.startswith(_DATA) or b'"choices":[]' not in event:
            return event
        return _DATA + await self._counted(event.removeprefix(_DATA))

    async def _counted(self, body: bytes) -> bytes:
        counts = await self._count()

        def add(answer: dict[str, Any]) -> dict[str, Any] | None:
            usage = answer.get("usage")
            if not isinstance(usage, dict):
                return None
            details = {**(usage.get("completion_tokens_details") or {}), **counts}
            return {**answer, "usage": {**usage, "completion_tokens_details": details}}

        return edited(body, add)
