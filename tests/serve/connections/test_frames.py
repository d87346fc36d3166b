"""A socket's frames, byte by byte, against the installed uvicorn with our bounds."""

import asyncio
import base64
import struct

import pytest

from headstart_server.connections import frames
from headstart_server.connections.frames import Frames
from tests.serve.connections.served import Client, Clock, run, served, settle

LONG_TURN_S = 0.1
"""Processor time. Without bounds, the frames of one read take 0.6 s on a quick machine."""
MASK = b"\0\0\0\0"
TEXT, BINARY, MORE, CLOSE, PING, PONG = 0x1, 0x2, 0x0, 0x8, 0x9, 0xA
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"k" * 16) + b"\r\n\r\n"
)


def frame(kind: int, content: bytes = b"", *, is_final: bool = True) -> bytes:
    length = len(content)
    if length < 126:
        told = bytes((0x80 | length,))
    elif length < 1 << 16:
        told = bytes((0x80 | 126,)) + struct.pack(">H", length)
    else:
        told = bytes((0x80 | 127,)) + struct.pack(">Q", length)
    return bytes((0x80 * is_final | kind,)) + told + MASK + content


class App:
    """Accepts when it is let go, and notes the messages."""

    def __init__(self) -> None:
        self.go, self.reads = asyncio.Event(), asyncio.Event()
        self.go.set()
        self.reads.set()
        self.messages: list[bytes | str] = []
        self.code = 0

    async def __call__(self, scope, receive, send) -> None:
        await receive()
        await self.go.wait()
        await send({"type": "websocket.accept"})
        while True:
            await self.reads.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.code = message["code"]
                return
            self.messages.append(message.get("text") or message.get("bytes"))


async def opened(server) -> Client:
    client = await server.connect()
    await client.send(HANDSHAKE)
    await client.read_until(b"\r\n\r\n")
    return client


FLOODS = {
    "pings": frame(PING),
    "long pings": frame(PING, b"x" * 125),
    "pongs": frame(PONG),
    "fragments": frame(MORE, is_final=False),
    "short fragments": frame(MORE, b"x", is_final=False),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_frames_that_are_no_messages_end_the_socket_and_stop_nobody(flood):
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await opened(server)
            content = frame(TEXT, b"x", is_final=False) + FLOODS[flood] * 100_000
            sent = 0
            for _ in range(100):
                try:
                    sent += client.send_some(content[sent:])
                except ConnectionError:
                    break
                await settle()
            said = await client.read_to_end()
            assert said.count(b"\x8a") <= frames.CONTROLS_AT_ONCE + 8 * len(content)
            assert server.longest_turn_s < LONG_TURN_S
            assert len(server.connections) == 0
            assert app.code == 1008
            assert app.messages == []

    run(work())


def test_the_server_says_why_it_closes():
    async def work() -> None:
        async with served(App()) as server:
            client = await opened(server)
            await client.send(frame(PING) * 100)
            said = await client.read_to_end()
            assert struct.pack(">H", 1008) + b"too many control frames" in said

    run(work())


def test_nothing_is_parsed_before_the_handshake_is_answered():
    async def work() -> None:
        app = App()
        app.go.clear()
        async with served(app) as server:
            client = await server.connect()
            await client.send(HANDSHAKE)
            await settle()
            for _ in range(20):
                client.send_some(frame(PING) * 10_000)
                await settle()
            assert len(server.connections) == 1
            assert server.longest_turn_s < LONG_TURN_S
            app.go.set()
            await client.read_to_end()
            assert app.code == 1008

    run(work())


def test_what_was_sent_before_the_answer_of_the_handshake_is_read_after_it():
    async def work() -> None:
        app = App()
        app.go.clear()
        async with served(app) as server:
            client = await server.connect()
            await client.send(HANDSHAKE)
            await settle()
            await client.send(frame(TEXT, b"first"))
            await settle()
            app.go.set()
            await client.read_until(b"\r\n\r\n")
            await settle()
            assert app.messages == ["first"]

    run(work())


@pytest.mark.parametrize("cut", [1, 2, 5, 1000, 1 << 20])
def test_messages_arrive_whole_however_they_were_cut(cut):
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await opened(server)
            long = bytes(range(256)) * (4 if cut < 10 else 400)
            sent = (
                frame(TEXT, b"one")
                + frame(BINARY, long)
                + frame(PING, b"ping")
                + frame(BINARY, long[:300], is_final=False)
                + frame(PING, b"ping")
                + frame(MORE, b"", is_final=False)
                + frame(MORE, long[300:])
                + frame(TEXT, b"two")
            )
            for start in range(0, len(sent), cut):
                await client.send(sent[start : start + cut])
                await asyncio.sleep(0)
            while len(app.messages) < 4:
                await settle()
            assert app.messages == ["one", long, long, "two"]

    run(work())


def test_a_large_message_in_many_parts_is_read():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await opened(server)
            part = b"x" * 4096
            await client.send(frame(BINARY, part, is_final=False))
            for _ in range(500):
                await client.send(frame(MORE, part, is_final=False))
            await client.send(frame(MORE, part))
            while not app.messages:
                await settle()
            assert [len(message) for message in app.messages] == [502 * 4096]

    run(work())


def test_a_client_may_ping_at_a_pace_and_close():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await opened(server)
            for _ in range(3 * frames.CONTROLS_AT_ONCE):
                await client.send(frame(PING, b"?"))
                await client.read_until(b"\x8a\x01?")
                server.clock.now_s += 1.01 / frames.CONTROLS_A_SECOND
            await client.send(frame(CLOSE, struct.pack(">H", 1000)))
            await client.read_to_end()
            await settle()
            assert app.code == 1000

    run(work())


def test_only_one_message_waits_while_the_application_reads_none():
    async def work() -> None:
        app = App()
        app.reads.clear()
        async with served(app) as server:
            client = await opened(server)
            for _ in range(20):
                client.send_some(frame(TEXT, b"x") * 1000)
                await settle()
            (held,) = server.uvicorn.server_state.connections
            assert held.queue.qsize() <= 2

    run(work())


def test_a_piece_is_bounded_whatever_the_frames_say():
    held = frame(PONG) * 30
    assert Frames(Clock()).piece_of(held, 0) == frames.PIECE_FRAMES * len(frame(PONG))
    long = frame(BINARY, b"x" * (1 << 20))
    assert Frames(Clock()).piece_of(long, 0) == frames.PIECE_BYTES
    two = frame(TEXT, b"one") + frame(TEXT, b"two")
    cut = Frames(Clock())
    assert cut.piece_of(two, 0) == len(frame(TEXT, b"one"))
    assert cut.piece_of(two, len(frame(TEXT, b"one"))) == len(two)
    # A head may be cut anywhere.
    for at in range(1, 14):
        cut = Frames(Clock())
        first = cut.piece_of(long[:at], 0)
        assert first == at
        cut.piece_of(long[at:], 0)
        assert cut.num_frames == 1
