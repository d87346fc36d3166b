"""A response with more than the answer: previews, and what became of the drafts.

Standard clients ignore fields they do not know. Previews stand in such a field of chunks whose
``content`` is empty; the answer's own chunks pass through untouched.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from headstart.answers.preview import Preview
from headstart.engine.front_end import Asking
from headstart_server.asgi import Message, Send, is_event_stream

DONE = b"data: [DONE]"


class DraftedResponse:
    """One response on its way out. Its methods are called on one event loop."""

    def __init__(self, send: Send, request_id: str, model: str, asking: Asking) -> None:
        self._send = send
        self._id = f"chatcmpl-{request_id}"
        self._model = model
        self._asking = asking
        self._created = int(time.time())
        self._turn = asyncio.Lock()
        self._streams: bool | None = None
        self._over = False
        self._held: Message | None = None
        self._buffer = b""
        self.num_previews = 0

    async def send(self, message: Message) -> None:
        """What vLLM sends, in vLLM's place."""
        async with self._turn:
            if message["type"] == "http.response.start":
                self._streams = is_event_stream(message)
                if self._streams:
                    await self._send(message)
                    await self._send_previews()
                else:
                    self._held = message
            elif self._streams:
                await self._pass(message)
            else:
                # A whole answer waits for `finish`, which knows what to add to it.
                self._buffer += message.get("body", b"")

    async def _pass(self, message: Message) -> None:
        """Chunks as they come, but for the last mark, which `finish` sends."""
        self._buffer += message.get("body", b"")
        *events, self._buffer = self._buffer.split(b"\n\n")
        kept = [event for event in events if event.strip() != DONE]
        for event in kept:
            self._asking.screen.confirm(_content_of(event))
        if kept:
            body = b"".join(event + b"\n\n" for event in kept)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def show_previews(self) -> None:
        """Send what the newest drafts add to what is shown, while the answer streams."""
        async with self._turn:
            if self._streams and not self._over:
                await self._send_previews()

    async def _send_previews(self) -> None:
        for shown in self._asking.previews():
            if isinstance(shown, Preview):
                self.num_previews += 1
                expected = self._asking.screen.expected
                await self._send_chunk({"preview": expected, "source": shown.source})

    async def finish(self, told: dict[str, Any]) -> None:
        """The end, with what is told of the answer."""
        async with self._turn:
            if self._over or self._streams is None:
                return
            self._over = True
            if self._streams:
                await self._send_chunk(told)
                ending = self._buffer + DONE + b"\n\n"
                await self._send({"type": "http.response.body", "body": ending})
            elif self._held is not None:
                body = edited(self._buffer, lambda answer: _with_field(answer, told))
                await self._send(resized(self._held, body))
                await self._send({"type": "http.response.body", "body": body})

    async def _send_chunk(self, told: dict[str, Any]) -> None:
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}],
            "headstart": told,
        }
        data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


def _content_of(event: bytes) -> str:
    """The words in one chunk of the answer."""
    try:
        choices = json.loads(event.removeprefix(b"data: "))["choices"]
        return str(choices[0]["delta"].get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def edited(body: bytes, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> bytes:
    """A JSON object after ``edit``; as it was, to the byte, where that returns none."""
    try:
        answer = json.loads(body)
    except ValueError:
        return body
    changed = edit(answer) if isinstance(answer, dict) else None
    if changed is None:
        return body
    return json.dumps(changed, ensure_ascii=False).encode("utf-8", "surrogatepass")


def resized(start: Message, body: bytes) -> Message:
    """The start of a response whose body is now this one."""
    headers = [
        (name, str(len(body)).encode() if name.lower() == b"content-length" else value)
        for name, value in start["headers"]
    ]
    return {**start, "headers": headers}


def _with_field(answer: dict[str, Any], told: dict[str, Any]) -> dict[str, Any] | None:
    """A whole answer with our field; an error is left as it is."""
    return {**answer, "headstart": told} if "choices" in answer else None
