"""A response on its way out: vLLM's own to the byte, but for what its request asks to be added.

Previews, and what became of the drafts, stand in a field ``headstart``: standard clients ignore
fields that they do not know. In a stream it is in chunks of its own, whose ``content`` is empty.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from headstart.answers.preview import Preview
from headstart.answers.timeline import Timeline
from headstart.engine.front_end import OpenRequest
from headstart.engine.request_record import RequestRecord
from headstart_server.asgi import Message, Send
from headstart_server.request_context import is_event_stream

DONE = b"data: [DONE]"
_DATA = b"data: "
_FAILED = b'data: {"error"'
_ROLE = b'"delta":{"role":"assistant"'
"""A stream's first chunk, which vLLM sends before it knows whether the request succeeds."""


class Response:
    """In vLLM's place as its ``send``, for up to two attempts; `finish` ends it.

    vLLM is asked once more where it fails before the first token. Its front end keeps track of
    which pictures its engine has cached, and counts a picture too early: if it refuses a request
    after preparing its pictures, they never reach the engine, and the next request with one of them
    fails with a 500. That failure corrects the cache. Nothing of an answer was sent before it.

    The methods are called on one event loop.
    """

    def __init__(
        self,
        send: Send,
        request_id: str,
        model: str,
        asking: OpenRequest | None = None,
        count: Callable[[], Awaitable[dict[str, int]]] | None = None,
    ) -> None:
        """With ``asking``, its previews are shown, and `finish` tells of its drafts.

        ``count`` gives more for ``usage.completion_tokens_details``, once the answer is complete.
        Of a stream only the chunk that holds nothing but the usage is changed, which clients ask
        for with ``stream_options.include_usage``.
        """
        self._send = send
        self._id = f"chatcmpl-{request_id}"
        self._model = model
        self._asking = asking
        self._count = count
        self._created = int(time.time())
        self._turn = asyncio.Lock()
        self._start: Message | None = None
        self._rewrites = asking is not None or count is not None
        self._has_begun = self._is_over = False
        self._num_attempts = 0
        self._is_decided = False
        self._held: list[Message] = []
        self._buffer = b""
        self.wants_retry = False
        """After an attempt: whether vLLM is to be asked once more."""
        self.num_previews = 0

    async def send(self, message: Message) -> None:
        async with self._turn:
            body = message.get("body", b"")
            if message["type"] == "http.response.start":
                await self._begin_attempt(message)
            elif self._is_decided:
                if not self.wants_retry:
                    await self._pass(message)
            elif _ROLE in body and message.get("more_body", False):
                self._held.append(message)
            else:
                self._is_decided = True
                self.wants_retry = self._num_attempts == 1 and self._has_failed(body)
                if not self.wants_retry:
                    for each in (*self._held, message):
                        await self._pass(each)

    async def _begin_attempt(self, start: Message) -> None:
        self._num_attempts += 1
        self._is_decided = self.wants_retry = False
        self._held = []
        if not self._has_begun:
            self._start = start
            if is_event_stream(start):
                await self._begin(start)
                await self._send_previews()  # before the first token

    async def _begin(self, start: Message) -> None:
        self._has_begun = True
        await self._send(start)

    def _has_failed(self, body: bytes) -> bool:
        assert self._start is not None
        if self._start["status"] != HTTPStatus.OK:
            return bool(self._start["status"] == HTTPStatus.INTERNAL_SERVER_ERROR)
        return body.startswith(_FAILED) and b'"code": 500' in body

    async def _pass(self, message: Message) -> None:
        assert self._start is not None
        if not self._rewrites:
            if not self._has_begun:
                await self._begin(self._start)
            await self._send(message)
            return
        self._buffer += message.get("body", b"")
        if self._has_begun:  # else it is no stream, and its length is not known before `finish`
            *events, self._buffer = self._buffer.split(b"\n\n")
            shown = [await self._rewritten(event) for event in events if not self._is_end(event)]
            if shown:
                await self._send_body(b"".join(event + b"\n\n" for event in shown), more=True)

    def _is_end(self, event: bytes) -> bool:
        """Whether it is the last mark, which `finish` sends."""
        return self._asking is not None and event.strip() == DONE

    async def _rewritten(self, event: bytes) -> bytes:
        if self._asking is not None:
            self._asking.screen.confirm(_content_of(event))
        if self._count is None or not event.startswith(_DATA) or b'"choices":[]' not in event:
            return event
        return _DATA + await self._extended(event.removeprefix(_DATA))

    async def show_previews(self) -> None:
        """Send what the newest drafts add to what is shown, while the answer streams."""
        async with self._turn:
            if self._has_begun and not self._is_over:
                await self._send_previews()

    async def _send_previews(self) -> None:
        if self._asking is None:
            return
        for shown in self._asking.previews():
            if isinstance(shown, Preview):
                self.num_previews += 1
                expected = self._asking.screen.expected
                await self._send_chunk({"preview": expected, "source": shown.source})

    async def finish(self, told: dict[str, Any] | None = None) -> None:
        """The end, with what is told of the answer."""
        async with self._turn:
            if self._is_over or self._start is None or not self._rewrites:
                return
            self._is_over = True
            if not self._has_begun:
                body = await self._extended(self._buffer, told)
                await self._begin(_resized(self._start, body))
                await self._send_body(body)
            elif told is None:
                await self._send_body(self._buffer)
            else:
                await self._send_chunk(told)
                await self._send_body(self._buffer + DONE + b"\n\n")

    async def _extended(self, body: bytes, told: dict[str, Any] | None = None) -> bytes:
        """A JSON object with what is added to it; as it was, to the byte, where nothing is."""
        try:
            answer = json.loads(body)
        except ValueError:
            return body
        if not isinstance(answer, dict):
            return body
        more: dict[str, Any] = {}
        if self._count is not None and isinstance(usage := answer.get("usage"), dict):
            details = {**(usage.get("completion_tokens_details") or {}), **await self._count()}
            more["usage"] = {**usage, "completion_tokens_details": details}
        if told is not None and "choices" in answer:  # an error is left as it is
            more["headstart"] = told
        if not more:
            return body
        return json.dumps({**answer, **more}, ensure_ascii=False).encode("utf-8", "surrogatepass")

    async def _send_chunk(self, told: dict[str, Any]) -> None:
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}],
            "headstart": told,
        }
        await self._send_body(_DATA + json.dumps(chunk).encode() + b"\n\n", more=True)

    async def _send_body(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _content_of(event: bytes) -> str:
    """The words in one chunk of the answer."""
    try:
        choices = json.loads(event.removeprefix(_DATA))["choices"]
        return str(choices[0]["delta"].get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def _resized(start: Message, body: bytes) -> Message:
    headers = [
        (name, str(len(body)).encode() if name.lower() == b"content-length" else value)
        for name, value in start["headers"]
    ]
    return {**start, "headers": headers}


def draft_counts(record: RequestRecord) -> dict[str, Any]:
    by_source = record.by_source()
    return {
        "accepted_tokens": record.num_accepted,
        "drafted_tokens": sum(drafted for drafted, _ in by_source.values()),
        "passes": len(record.report.accepted) if record.report else None,
        "fused": record.fused,
        "cached_tokens": record.num_cached_tokens,
        "sources": {
            source: {"drafted_tokens": drafted, "accepted_tokens": accepted}
            for source, (drafted, accepted) in by_source.items()
        },
    }


def stage_times(record: RequestRecord, drafter: Timeline | None) -> dict[str, Any] | None:
    """The stages of the target and the drafter, in milliseconds from the request's arrival.

    None if the engine did not finish the answer.
    """
    timeline = record.timeline()
    if timeline is None:
        return None

    def since_ms(moment_s: float) -> float:
        return round((moment_s - record.received_s) * 1e3, 3)

    def spans(side: Timeline | None) -> list[dict[str, Any]]:
        return [
            {
                "stage": span.stage.value,
                "start_ms": since_ms(span.start_s),
                "end_ms": since_ms(span.end_s),
            }
            for span in (side.spans if side else ())
        ]

    total_ms = round(timeline.total_s * 1e3, 3)
    return {"total_ms": total_ms, "target": spans(timeline), "drafter": spans(drafter)}
