"""Sends a request to vLLM once more if vLLM fails before the first token.

vLLM's front end keeps track of which pictures its engine has cached. It counts a picture as cached
too early: if it refuses a request after preparing its pictures, they never reach the engine, and
the next request with one of them fails with a 500. That failure corrects the cache, so a retry
succeeds. Nothing of an answer was sent before it.
"""

from http import HTTPStatus

from headstart_server.asgi import Message, Send, is_event_stream

_FAILED = b'data: {"error"'
_ROLE = b'"delta":{"role":"assistant"'
"""A stream's first chunk, which vLLM sends before it knows whether the request succeeds."""


class CacheMissRetry:
    """Wraps a client's ``send``; `wanted` says after the first attempt whether to retry."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._held: list[Message] = []
        self._is_decided = False
        self._has_begun = False
        self._num_attempts = 0
        self.wanted = False

    async def send(self, message: Message) -> None:
        """Pass a message of vLLM's on, unless it belongs to an attempt that failed."""
        if message["type"] == "http.response.start":
            self._num_attempts += 1
            self._start, self._held = message, []
            self._is_decided = self.wanted = False
            if is_event_stream(message):
                await self._begin()  # previews are sent before the first token
            return
        if not self._is_decided:
            body = message.get("body", b"")
            if _ROLE in body and message.get("more_body", False):
                self._held.append(message)
                return
            self._is_decided = True
            self.wanted = self._num_attempts == 1 and self._has_failed(body)
        if not self.wanted:
            await self._begin()
            for held in self._held:
                await self._send(held)
            self._held = []
            await self._send(message)

    async def _begin(self) -> None:
        if self._start is not None and not self._has_begun:
            self._has_begun = True
            await self._send(self._start)

    def _has_failed(self, body: bytes) -> bool:
        if self._start is not None and self._start["status"] != HTTPStatus.OK:
            return bool(self._start["status"] == HTTPStatus.INTERNAL_SERVER_ERROR)
        return body.startswith(_FAILED) and b'"code": 500' in body
