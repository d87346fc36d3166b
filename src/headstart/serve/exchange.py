"""What goes back to a client that asked for more than the answer: previews, and where it came from.

Standard clients ignore fields they do not know. Previews stand in such a field of chunks whose
``content`` is empty; the answer's own chunks pass through untouched.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from headstart.serve.refusal import Message, Send

DONE = b"data: [DONE]"


class Exchange:
    """One response on its way out. Its methods are called on one event loop."""

    def __init__(self, send: Send, request_id: str, model: str) -> None:
        self._send = send
        self._id = f"chatcmpl-{request_id}"
        self._model = model
        self._created = int(time.time())
        self._turn = asyncio.Lock()
        self._streams: bool | None = None
        self._over = False
        self._held: Message | None = None
        self._buffer = b""
        self._content = ""
        self._previewed = ""
        self._early = ("", "")
        self.num_previews = 0

    async def send(self, message: Message) -> None:
        """What vLLM sends, in vLLM's place."""
        async with self._turn:
            if message["type"] == "http.response.start":
                kinds = {name.lower(): value for name, value in message["headers"]}
                self._streams = kinds.get(b"content-type", b"").startswith(b"text/event-stream")
                if self._streams:
                    await self._send(message)
                    await self._show(*self._early)
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
            self._content += _content_of(event)
        if kept:
            body = b"".join(event + b"\n\n" for event in kept)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def preview(self, text: str, source: str) -> None:
        """Show what the whole answer is expected to be.

        Not once it is over, nor what the answer has refuted already, nor the same again.
        """
        async with self._turn:
            if self._streams is None:
                self._early = text, source  # as soon as there is a stream
            elif self._streams and not self._over:
                await self._show(text, source)

    async def _show(self, text: str, source: str) -> None:
        is_news = text != self._previewed and len(text) > len(self._content)
        if is_news and text.startswith(self._content):
            self._previewed = text
            self.num_previews += 1
            await self._send_chunk({"preview": text, "source": source})

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
