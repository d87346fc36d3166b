"""One connection of a client to its camera."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from http import HTTPStatus

from headstart.errors import MediaError
from headstart_client.wire import SUBPROTOCOL, CloseCode, Media
from headstart_server.asgi import Message as AsgiMessage
from headstart_server.limits import Limits
from headstart_server.live.cameras import SocketCameras
from headstart_server.live.messages import Ack, Ask, End, FromClient, Resume, Start, read_message
from headstart_server.live.send_queue import SendQueue, close_code
from headstart_server.live.socket_camera import SocketCamera
from headstart_server.quota import Bucket
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.request_context import RequestContext

LOOK_S = 1.0
"""How often counts are sent, and the key and the idle time are checked."""
RETRY_AFTER_S = 1
UNREADABLE_CODES = (1002, 1003, 1007, 1008, 1009)
"""With these uvicorn closes over a message that is no message, or too long; 1008 is over frames."""
REFUSALS = (CloseCode.REFUSED, CloseCode.TRY_LATER)
"""With these the server closes over what the client sent, or over a limit."""
LAST_WORDS_S = 5.0
"""How long a client may take to read a refusal, or to close after the end."""
MESSAGES_A_FRAME = 4
"""Messages that are read for each frame of ``live_frames_per_minute``: a client also sends events,
acknowledgements and questions."""
COUNTED_BYTES = 256 << 10
"""A message counts once more for each so many bytes."""


class ReadLimit:
    """How fast messages are read, whatever they are: at once no more than one second's worth."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        per_minute = MESSAGES_A_FRAME * limits.live_frames_per_minute
        self._bucket = Bucket(per_minute, clock(), max(1.0, per_minute / 60))

    def wait_s(self) -> float:
        """How long until the next message may be read; 0 if it may be now."""
        return self._bucket.wait_s(1, self._clock())

    def count(self, num_bytes: int) -> None:
        self._bucket.take(1 + num_bytes // COUNTED_BYTES, self._clock())


class _LeftError(Exception):
    """The client closed its connection, or the connection broke."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LiveSocket:
    """From the handshake to the close. Used from one event loop only."""

    def __init__(
        self,
        context: RequestContext,
        cameras: SocketCameras,
        limits: Limits,
        check_key: Callable[[], None],
    ) -> None:
        """``check_key`` raises a refusal once the client's key is no longer valid."""
        self._context, self._cameras = context, cameras
        self._limits, self._check_key = limits, check_key
        self._queue = SendQueue()
        self._camera: SocketCamera | None = None
        self._read_limit = ReadLimit(limits)
        self._heard_s = time.monotonic()
        """When the last message came, or when the next is read if that is later."""
        self._stopped = asyncio.Event()
        self.was_refused = False
        """Whether it ended over what the client sent, or over a limit."""

    async def delay(self, wait_s: float) -> None:
        """Let a client wait that is not accepted yet; `stop` ends it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stopped.wait()

    async def serve(self, on_started: Callable[[], None]) -> None:
        """Accept the connection and serve it to its end; ``on_started`` is called once it is known
        which camera it is."""
        is_complete = False
        try:
            await self._send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
            self._camera = await self._open()
            on_started()
            is_complete = await self._serve(self._camera)
        except RefusedError as refusal:
            self._context.details["refused"] = refusal.message
            self.was_refused = close_code(refusal) in REFUSALS
            if self._camera is not None:
                self._cameras.remove(self._camera)
            await self._close(refusal)
        except _LeftError as left:
            self._context.details["left"] = left.code
            is_unreadable = left.code in UNREADABLE_CODES
            self.was_refused |= is_unreadable
            if self._camera is not None and is_unreadable:
                self._cameras.remove(self._camera)
        finally:
            if self._camera is not None:
                counts = self._camera.counts()
                noted = {name: counts[name] for name in ("frames", "windows", "lost_for")}
                self._context.details |= {"stream": self._camera.stream, **noted}
                self._cameras.leave(self._camera, self._queue, is_complete=is_complete)

    def stop(self) -> None:
        """Do not wait any longer for a client that has not said which camera it is."""
        self._stopped.set()

    async def _open(self) -> SocketCamera:
        first, tenant = await self._first(), self._context.tenant
        match first:
            case Start():
                return await self._cameras.start(tenant, first, self._queue)
            case Resume():
                return self._cameras.resume(tenant, first, self._queue)
        raise bad_request('the first message must be of type "start" or "resume"')

    async def _first(self) -> FromClient | Media:
        receiving = asyncio.ensure_future(self._receive())
        stopping = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait(
                (receiving, stopping),
                timeout=self._limits.body_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if receiving.done():
                return receiving.result()
        finally:
            receiving.cancel()
            stopping.cancel()
        nothing = "no first message came; connect again"
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, nothing, RETRY_AFTER_S)

    async def _serve(self, camera: SocketCamera) -> bool:
        """Until the camera has ended; returns whether the client has closed after it."""
        reading = asyncio.ensure_future(self._read(camera))
        writing = asyncio.ensure_future(self._write(self._queue))
        watching = asyncio.ensure_future(self._watch(camera))
        tasks = {reading, writing, watching}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {writing}:
                task.result()  # raises: neither ends by itself
            code = writing.result()
            self._context.details["code"] = int(code)
            if code is not CloseCode.ENDED:
                # A camera that another connection took over was not refused, and goes on.
                self.was_refused = camera.is_over and code in REFUSALS
                await self._close_with(code)
                return False
            return await self._wait_for_close(reading)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_close(self, reading: "asyncio.Task[None]") -> bool:
        """After the end the client closes, once it has everything."""
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await reading
        except _LeftError as left:
            return left.code == CloseCode.ENDED
        except (TimeoutError, RefusedError):
            await self._close_with(CloseCode.ENDED)
        return False

    async def _read(self, camera: SocketCamera) -> None:
        while True:
            message = await self._receive()
            match message:
                case Media():
                    camera.put(message)
                case Ack():
                    camera.acknowledge(message.number)
                case Ask():
                    camera.ask(message)
                case End():
                    camera.end()
                case _:
                    raise bad_request(
                        f"a camera is under way here, so {message.type} cannot come; connect again"
                        " for another one"
                    )

    async def _watch(self, camera: SocketCamera) -> None:
        told = camera.counts()
        while True:
            await asyncio.sleep(LOOK_S)
            self._check_key()
            if time.monotonic() - self._heard_s > self._limits.live_idle_s:
                nothing = f"nothing came for {self._limits.live_idle_s:g} s; start again"
                raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, nothing)
            if (counts := camera.counts()) != told and self._queue.send_if_room(counts):
                told = counts

    async def _write(self, queue: SendQueue) -> CloseCode:
        """Send until the end; returns how the socket is to be closed."""
        while not isinstance(message := await queue.next(), CloseCode):
            await self._send({"type": "websocket.send", "text": json.dumps(message)})
        return message

    async def _receive(self) -> FromClient | Media:
        if (wait_s := self._read_limit.wait_s()) > 0:
            # Meanwhile uvicorn stops reading, and the client cannot send: it is not silent.
            self._heard_s = time.monotonic() + wait_s
            await asyncio.sleep(wait_s)
        message = await self._context.receive()
        if message["type"] == "websocket.disconnect":
            raise _LeftError(int(message.get("code") or 0))
        self._heard_s = time.monotonic()
        content, text = message.get("bytes"), message.get("text")
        num_bytes = len(content or text or "")
        self._context.num_bytes += num_bytes
        self._read_limit.count(num_bytes)
        if content is None:
            return read_message(text or "", self._limits)
        try:
            return Media.parse(content)
        except MediaError as error:
            raise bad_request(str(error)) from error

    async def _close(self, refusal: RefusedError) -> None:
        self._context.details["code"] = int(close_code(refusal))
        last_words = SendQueue()
        last_words.refuse(refusal)
        # A client that has stopped reading, or has left, does not read the refusal either.
        with contextlib.suppress(TimeoutError, _LeftError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._close_with(await self._write(last_words))

    async def _close_with(self, code: CloseCode) -> None:
        await self._send({"type": "websocket.close", "code": int(code)})

    async def _send(self, message: AsgiMessage) -> None:
        try:
            await self._context.raw_send(message)
        except OSError as error:  # uvicorn's ClientDisconnected is one
            raise _LeftError(0) from error
