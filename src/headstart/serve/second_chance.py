"""A request that vLLM fails before its first word is asked once more.

vLLM's front end notes which pictures its engine has. It notes them too early: a request refused
after its pictures were prepared never brings them to the engine, and the next one that shows the
same picture fails with a 500. vLLM then corrects its note, so asked again it answers. Nothing was
said yet, so nothing is said twice.
"""

from http import HTTPStatus

from headstart.serve.refusal import Message, Send

_FAILED = b'data: {"error"'
_ROLE = b'"delta":{"role":"assistant"'
"""A stream begins with who speaks, before it is known whether anything is said."""


class SecondChance:
    """Stands before the client; `wanted` says after a try whether there should be another."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._held: list[Message] = []
        self._is_decided = False
        self._has_begun = False
        self._tries = 0
        self.wanted = False

    async def send(self, message: Message) -> None:
        """What vLLM sends, in vLLM's place."""
        if message["type"] == "http.response.start":
            self._tries += 1
            self._start, self._held = message, []
            self._is_decided = self.wanted = False
            kinds = {name.lower(): value for name, value in message["headers"]}
            if kinds.get(b"content-type", b"").startswith(b"text/event-stream"):
                await self._begin()  # previews come before the first word
            return
        if not self._is_decided:
            body = message.get("body", b"")
            if _ROLE in body and message.get("more_body", False):
                self._held.append(message)
                return
            self._is_decided = True
            self.wanted = self._tries == 1 and self._has_failed(body)
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
