"""HTTP without a key, byte by byte, against the installed uvicorn with our bounds."""

import asyncio
import socket
import struct
from types import SimpleNamespace

import pytest

from headstart_server.connections import connection, uvicorn_protocols
from headstart_server.connections.connection import OpenConnections
from headstart_server.connections.uvicorn_protocols import UvicornError, bound_connections
from headstart_server.limits import Limits
from tests.serve.connections.served import run, served, settle

GET = b"GET /x HTTP/1.1\r\n\r\n"
LONG_TURN_S = 0.1
"""Processor time. Without bounds, the requests of one read take 0.4 s on a quick machine."""


@pytest.fixture(autouse=True)
def no_naps(monkeypatch):
    """Who waits for the clock looks at it in each turn."""
    monkeypatch.setattr(connection, "NAP_S", 0.0)


class App:
    """Answers with the request's path and its body's length; `/hold` only when it is let go."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.num_bytes = 0
        self.go, self.left = asyncio.Event(), asyncio.Event()
        self.answer = b""

    async def __call__(self, scope, receive, send) -> None:
        path = scope["path"]
        self.paths.append(path)
        num_bytes, more = 0, scope["method"] == "POST"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.num_bytes += len(message.get("body", b""))
            num_bytes += len(message.get("body", b""))
            more = message.get("more_body", False)
        if path == "/leave":
            await self.go.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(3):
                piece = {"type": "http.response.body", "body": b"x", "more_body": True}
                await send(piece)
                await settle()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return
        if path == "/hold":
            await self.go.wait()
        body = f"{path} {num_bytes};".encode() + self.answer
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


def test_requests_without_end_on_one_connection_hold_a_few_and_stop_nobody():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client, other = await server.connect(), await server.connect()
            await client.send(b"GET /hold HTTP/1.1\r\n\r\n")
            sent, flood = 0, GET * 20_000
            for _ in range(50):
                sent += client.send_some(flood[sent % len(GET) :])
                await settle()
            assert sent > 100_000
            assert server.num_held <= uvicorn_protocols.MAX_PIPELINE
            app.go.set()
            # Everything that is answered lets in no more than was answered.
            for _ in range(50):
                client.raw.setblocking(False)
                sent += client.send_some(flood[sent % len(GET) :])
                await client.read(1 << 20)
                assert server.num_held <= uvicorn_protocols.MAX_PIPELINE
            await other.send(b"GET /other HTTP/1.1\r\n\r\n")
            assert b"/other 0;" in await other.read()
            assert server.longest_turn_s < LONG_TURN_S

    run(work())


def test_an_ordinary_pipeline_is_answered_in_its_order():
    async def work() -> None:
        async with served(App()) as server:
            client = await server.connect()
            asked = b"".join(
                b"GET /%d HTTP/1.1\r\n\r\nPOST /body%d HTTP/1.1\r\ncontent-length: 5\r\n\r\nabcde"
                % (number, number)
                for number in range(3)
            )
            for _ in range(2):  # the connection is kept
                await client.send(asked)
                said = await client.read_until(b";", 6)
                said = b" ".join(part.split(b"\r\n\r\n")[-1] for part in said.split(b";"))
                expected = b"/0 0 /body0 5 /1 0 /body1 5 /2 0 /body2 5"
                assert said.strip() == expected

    run(work())


def test_a_long_pipeline_of_heads_is_answered_too():
    async def work() -> None:
        async with served(App()) as server:
            client = await server.connect()
            await client.send(GET * 100)
            said = await client.read_until(b"/x 0;", 100)
            assert said.count(b"200 OK") == 100

    run(work())


def test_more_bodies_than_a_pipeline_may_hold_end_the_connection():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            await client.send(
                b"POST /hold HTTP/1.1\r\ncontent-length: 1\r\n\r\n" + b"a" + GET * 500
            )
            assert await client.read_to_end() == b""
            assert server.num_held <= uvicorn_protocols.MAX_PIPELINE
            assert len(server.connections) == 0

    run(work())


@pytest.mark.parametrize("cut", [1, 7, 4096, 1 << 20])
def test_a_body_arrives_whole_however_it_was_cut(cut):
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            size = 100_000 if cut > 7 else 500
            whole = b"POST /body HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size
            whole += (b"\r\n\r\n" * size)[:size] + b"GET /next HTTP/1.1\r\n\r\n"
            for start in range(0, len(whole), cut):
                await client.send(whole[start : start + cut])
                await asyncio.sleep(0)
            said = await client.read_until(b"/next 0;")
            assert b"/body %d;" % size in said

    run(work())


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * (1 << 20),
        b"GET / HTTP/1.1\r\na: " + b"a" * (1 << 20),
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (1 << 17),
    ],
    ids=["address", "value", "headers"],
)
def test_a_head_has_an_end(endless):
    async def work() -> None:
        async with served(App()) as server:
            client = await server.connect()
            sent, said = 0, b""
            while not said:
                if sent < len(endless):
                    sent += client.send_some(endless[sent:])
                await settle()
                server.clock.now_s += 1  # a pace is kept, too
                if not len(server.connections):
                    said = await client.read()
            assert b"400 Bad Request" in said
            assert b"too long" in said
            assert server.longest_turn_s < LONG_TURN_S

    run(work())


def test_what_follows_a_body_has_an_end_too():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            await client.send(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n")
            while len(server.connections):
                client.send_some(b"a: b\r\n" * 1000)
                await settle()
                server.clock.now_s += 1
            assert app.paths == ["/"]

    run(work())


def test_parts_are_parsed_at_a_pace():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            await client.send(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
            await settle()
            (http,) = server.uvicorn.server_state.connections
            chunks = b"1\r\nx\r\n" * 200_000
            sent, before, most = 0, http.num_parts, 0
            for turn in range(3000):
                if turn % 100 == 0:
                    sent += client.send_some(chunks[sent:])
                await asyncio.sleep(0)
                before, most = http.num_parts, max(most, http.num_parts - before)
            assert most <= uvicorn_protocols.BODY_PIECE_BYTES // 6 + 1  # before it is known
            assert before - connection.PARTS_A_SECOND <= most
            first = app.num_bytes
            # All that may come at once, and a piece more.
            assert connection.PARTS_A_SECOND <= first < 2.5 * connection.PARTS_A_SECOND
            assert server.longest_turn_s < LONG_TURN_S

    run(work())


def test_a_head_that_drips_is_ended_and_an_idle_connection_too():
    async def work() -> None:
        async with served(App()) as server:
            idle, drips, kept = [await server.connect() for _ in range(3)]
            await kept.send(b"GET /kept HTTP/1.1\r\n\r\n")
            await kept.read_until(b";")
            for _ in range(int(connection.HEAD_S)):
                await drips.send(b"GET /" if server.clock.now_s == 0 else b"a")
                await settle()
                server.clock.now_s += 1
                server.connections.look()
                if server.clock.now_s == 20:
                    await kept.send(b"GET /again HTTP/1.1\r\n\r\n")
                    await kept.read_until(b";")
            assert server.connections.num_waiting == 3
            server.clock.now_s += 1
            server.connections.look()
            assert await idle.read_to_end() == b""
            await drips.read_to_end()
            assert server.connections.num_waiting == 1
            await kept.send(b"GET /third HTTP/1.1\r\n\r\n")
            await kept.read_until(b"/third")

    run(work())


def test_a_request_under_way_waits_for_no_head():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            await client.send(b"GET /hold HTTP/1.1\r\n\r\n")
            await settle()
            server.clock.now_s += 10 * connection.HEAD_S
            server.connections.look()
            app.go.set()
            await client.read_until(b"/hold 0;")

    run(work())


@pytest.mark.parametrize("keeps", [b"", b"connection: close\r\n"])
def test_an_answer_that_nobody_reads_is_dropped(keeps):
    async def work() -> None:
        app = App()
        app.answer = b"x" * (16 << 20)
        async with served(app) as server:
            client = await server.connect()
            await client.send(b"GET / HTTP/1.1\r\n" + keeps + b"\r\n")
            await settle()
            server.connections.look()
            for _ in range(3):  # so slow a reader is let be
                server.clock.now_s += connection.UNREAD_S - 1
                read = 0
                while read < 2 * connection.UNREAD_BYTES:
                    read += len(await client.read())
                    await settle()
                server.connections.look()
            server.clock.now_s += connection.UNREAD_S - 1
            server.connections.look()
            assert len(server.connections) == 1
            server.clock.now_s += 2
            server.connections.look()
            await settle()
            assert len(server.connections) == 0
            assert len(await client.read_to_end()) < len(app.answer)

    run(work())


def test_a_client_that_does_not_read_is_not_read():
    async def work() -> None:
        app = App()
        app.answer = b"x" * (1 << 20)
        async with served(app) as server:
            client = await server.connect()
            for _ in range(50):
                client.send_some(GET * 100)
                await settle()
            assert len(app.paths) < 20

    run(work())


def test_who_leaves_is_missed_by_the_request_under_way_behind_which_others_wait():
    async def work() -> None:
        app = App()
        async with served(app) as server:
            client = await server.connect()
            await client.send(b"GET /leave HTTP/1.1\r\n\r\n" + GET)
            await settle()
            assert server.num_held == 1
            client.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.raw.close()
            app.go.set()
            await asyncio.wait_for(app.left.wait(), 10)

    run(work())


def test_an_answer_to_a_connection_that_was_ended_is_no_failure(caplog):
    async def work() -> None:
        app = App()
        async with served(app) as server:
            caplog.set_level("ERROR", "uvicorn.error")
            client = await server.connect()
            await client.send(b"POST /hold HTTP/1.1\r\ncontent-length: 1\r\n\r\na" + GET * 500)
            assert await client.read_to_end() == b""
            app.go.set()
            await settle()
            assert app.paths == ["/hold"]
        assert "Exception" not in caplog.text

    run(work())


def test_connections_without_a_request_make_room_for_new_ones(monkeypatch):
    monkeypatch.setattr(connection, "MAX_WAITING", 5)

    async def work() -> None:
        async with served(App()) as server:
            busy = await server.connect()
            await busy.send(b"GET /hold HTTP/1.1\r\n\r\n")
            await settle()
            clients = []
            for _ in range(8):
                clients.append(await server.connect())
                await settle()
            assert server.connections.num_waiting == 5
            assert len(server.connections) == 6
            for client in clients[:3]:
                assert await client.read_to_end() == b""
            await clients[-1].send(GET)
            await clients[-1].read_until(b"/x 0;")

    run(work())


def test_a_piece_that_fails_in_a_later_turn_ends_the_connection(monkeypatch):
    async def work() -> None:
        failures: list[Exception] = []
        async with served(App()) as server:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda loop, told: failures.append(told["exception"]))
            client = await server.connect()
            await client.send(GET)
            await client.read()
            (http,) = server.uvicorn.server_state.connections

            def fails(data: bytes) -> None:
                raise ZeroDivisionError

            whole = http.data_received
            # The first piece is handed on at once, the second in a turn of its own.
            monkeypatch.setattr(
                http, "data_received", lambda data: (whole if b"first" in data else fails)(data)
            )
            await client.send(b"GET /first HTTP/1.1\r\n\r\n" + GET)
            await client.read_to_end()
            assert [type(failure) for failure in failures] == [ZeroDivisionError]
            assert len(server.connections) == 0

    run(work())


def test_another_uvicorn_is_told_so():
    class Other:
        pass

    for known in ("http_protocol_class", "ws_protocol_class"):
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
        from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

        config = SimpleNamespace(
            http_protocol_class=HttpToolsProtocol, ws_protocol_class=WebSocketsSansIOProtocol
        )
        setattr(config, known, Other)
        with pytest.raises(UvicornError, match=r"uvicorn.*Other.*pip install"):
            bound_connections(config, Limits(), OpenConnections())
    with pytest.raises(UvicornError, match="has no on_header "):
        uvicorn_protocols.bounded_http(Other)
