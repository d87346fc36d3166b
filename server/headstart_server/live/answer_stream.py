"""One reader of a registered camera's messages: server-sent events, for as long as it reads."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from http import HTTPStatus

from headstart_client.wire import CloseCode
from headstart_server.live.messages import Message, error_message
from headstart_server.live.send_queue import SendQueue
from headstart_server.live.source_camera import SourceCamera
from headstart_server.refusal import RefusedError
from headstart_server.request_context import ClientDisconnectedError, RequestContext

LOOK_S = 1.0
"""How often the key is checked."""
IDLE_S = 15.0
"""After so long without a message a comment is sent: a connection that is dead is noticed."""
STALLED_S = 20.0
"""A reader that takes nothing for so long is gone."""
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # proxies hold back what they buffer
]


class AnswerStream:
    """From the first event to the last. Used from one event loop only."""

    def __init__(
        self, context: RequestContext, camera: SourceCamera, check_key: Callable[[], None]
    ) -> None:
        """``check_key`` raises a refusal once the reader's key is no longer valid."""
        self._context, self._camera, self._check_key = context, camera, check_key
        self._queue = SendQueue()

    async def serve(self, number: int) -> None:
        """Send what comes, beginning with the answers after ``number``."""
        self._context.details |= {"stream": self._camera.stream}
        start = {"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": HEADERS}
        await self._context.send(start)
        self._camera.attach(self._queue, number)
        try:
            await self._serve()
        except RefusedError as refusal:
            self._context.details["refused"] = refusal.message
            await self._send(_event(error_message(refusal, is_last=True)))
        finally:
            self._camera.detach(self._queue)
        await self._send(b"", more_body=False)

    async def _serve(self) -> None:
        """Until the camera has ended, or another reader has it; raises if this one left."""
        tasks = [
            asyncio.ensure_future(work) for work in (self._write(), self._watch(), self._leave())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            message: Message | CloseCode | None = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    message = await self._queue.next()
            if isinstance(message, CloseCode):
                return
            await self._send(b":\n\n" if message is None else _event(message))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._check_key()

    async def _leave(self) -> None:
        while (await self._context.receive())["type"] != "http.disconnect":
            pass
        raise ClientDisconnectedError

    async def _send(self, content: bytes, *, more_body: bool = True) -> None:
        try:
            async with asyncio.timeout(STALLED_S):
                await self._context.send(
                    {"type": "http.response.body", "body": content, "more_body": more_body}
                )
        except TimeoutError as error:
            raise ClientDisconnectedError from error


def _event(message: Message) -> bytes:
    """A message as an event; that of an answer has the answer's number as its id."""
    id = f"id: {message['number']}\n" if message["type"] == "answer" else ""
    return f"event: {message['type']}\n{id}data: {json.dumps(message)}\n\n".encode()
