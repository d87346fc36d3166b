"""Answers posted to a real HTTP server that is slow, down, busy or refuses them."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headstart.errors import LiveError
from headstart.live.sinks.hook import Hook
from rig.waiting import wait_until as until


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted; answers with the next of ``statuses``, then with 204."""

    daemon_threads = True

    def __init__(self, port=0, statuses=(), said=None):
        self.statuses, self.numbers, self.may_answer = list(statuses), [], threading.Event()
        self.said = said
        self.may_answer.set()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/answers?key=secret"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Content-Type"] == "application/json"
        self.server.may_answer.wait(30)
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        if status == 204:
            self.server.numbers.append(row["number"])
        self.send_response(status, self.server.said)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self):
        self.server.numbers.append("a GET")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def receiving(**options):
    receiver = Receiver(**options)
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        receiver.shutdown()
        receiver.server_close()
        thread.join()


def test_answers_arrive_in_order_and_are_counted():
    with receiving() as receiver:
        with Hook(receiver.url) as hook:
            for number in range(20):
                hook.post({"number": number})
        assert receiver.numbers == list(range(20))
    assert (hook.counts.delivered, hook.counts.dropped, hook.counts.waiting) == (20, 0, 0)
    assert hook.counts.last_error is None


@pytest.mark.parametrize("status", [500, 503, 408, 429])
def test_a_busy_receiver_is_asked_again(status):
    with receiving(statuses=[status, status]) as receiver:
        with Hook(receiver.url, first_pause_s=0.01) as hook:
            hook.post({"number": 1})
            hook.post({"number": 2})
            until(lambda: hook.counts.delivered == 2)
        assert receiver.numbers == [1, 2]
    assert str(status) in hook.counts.last_error


@pytest.mark.parametrize("status", [302, 400, 404])
def test_what_the_receiver_refuses_is_dropped_and_the_next_goes_on(status, caplog):
    with receiving(statuses=[status]) as receiver:
        with Hook(receiver.url, first_pause_s=60) as hook:
            hook.post({"number": 1})
            hook.post({"number": 2})
            until(lambda: hook.counts.delivered == 1)
        assert receiver.numbers == [2]
    assert hook.counts.dropped == 1
    assert f"http://127.0.0.1 does not take answers: {status}" in caplog.text
    assert "secret" not in caplog.text


def test_a_receiver_that_comes_back_gets_what_waited():
    with receiving() as receiver:
        port = receiver.server_port
    with Hook(receiver.url, first_pause_s=0.01) as hook:
        hook.post({"number": 1})
        until(lambda: hook.counts.last_error)
        hook.post({"number": 2})
        with receiving(port=port) as again:
            until(lambda: hook.counts.delivered == 2)
            assert again.numbers == [1, 2]
    assert hook.counts.dropped == 0


def test_a_slow_receiver_costs_the_oldest_answers_and_no_time():
    with receiving() as receiver:
        receiver.may_answer.clear()
        with Hook(receiver.url, max_waiting=3) as hook:
            hook.post({"number": 0})
            until(lambda: hook.counts.waiting == 0)  # under way
            for number in range(1, 11):
                hook.post({"number": number})  # returns, though the receiver does not answer
            assert (hook.counts.dropped, hook.counts.waiting) == (7, 3)
            receiver.may_answer.set()
            until(lambda: hook.counts.delivered == 4)
        assert receiver.numbers == [0, 8, 9, 10]


def test_the_end_waits_for_a_receiver_that_is_gone_no_longer_than_its_grace():
    with receiving() as receiver:
        pass
    hook = Hook(receiver.url, first_pause_s=60)
    for number in range(3):
        hook.post({"number": number})
    until(lambda: hook.counts.last_error)
    ending = threading.Thread(target=hook.close, kwargs={"grace_s": 0.3})
    ending.start()
    until(lambda: not ending.is_alive(), "the end, long before the next attempt", 30)
    until(lambda: hook.counts.dropped == 3)
    until(lambda: not any(thread.name == "hook" for thread in threading.enumerate()))
    hook.post({"number": 4})
    assert (hook.counts.dropped, hook.counts.waiting) == (4, 0)


@pytest.mark.parametrize("url", ["answers.example", "ftp://answers.example/x", "http:///x", ""])
def test_what_is_no_http_address_is_refused(url):
    with pytest.raises(LiveError, match="give http://HOST/PATH"):
        Hook(url)


def hook_threads():
    return [thread for thread in threading.enumerate() if thread.name == "hook"]


@contextmanager
def dripping(answer):
    """A receiver that sends the bytes of its answer, then one byte after another for ever."""
    is_over, gone = threading.Event(), threading.Semaphore(0)
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(connection):
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(answer)
            while not is_over.wait(0.01):
                connection.sendall(b"a")
        gone.release()

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/answers", gone
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()


DRIPS = [
    b"",
    b"HTTP/1.1 200 OK\r\nX: ",
    b"HTTP/1.1 200 " + b"OK" * 100,
    b"HTTP/1.1 503 Busy\r\nX: ",
]


@pytest.mark.parametrize("answer", DRIPS)
def test_a_receiver_that_drips_is_given_up_in_time(answer):
    with dripping(answer) as (url, gone), Hook(url, first_pause_s=60, timeout_s=0.3) as hook:
        hook.post({"number": 1})
        assert gone.acquire(timeout=20)  # its connection has ended
        until(lambda: hook.counts.last_error)
        assert "did not answer in time" in hook.counts.last_error
        hook.close(grace_s=0)
        assert (hook.counts.delivered, hook.counts.dropped) == (0, 1)


def test_no_thread_is_left_at_a_receiver_that_drips():
    with dripping(b"HTTP/1.1 200 OK\r\nX: ") as (url, gone):
        hooks = [Hook(url, timeout_s=600) for _ in range(4)]
        for hook in hooks:
            hook.post({"number": 1})
            until(lambda hook=hook: hook.counts.waiting == 0)  # under way
        for hook in hooks:
            hook.close(grace_s=0.1)
        assert all(gone.acquire(timeout=20) for _ in hooks)
        until(lambda: not hook_threads())
        assert [hook.counts.dropped for hook in hooks] == [1] * 4


def test_the_end_of_an_attempt_ends_tls_that_is_being_agreed_on():
    """A receiver that takes the connection and never says a word of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hook = Hook(f"https://127.0.0.1:{listener.getsockname()[1]}/answers", timeout_s=600)
        hook.post({"number": 1})
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1)  # of its hello
            hook.close(grace_s=0)
            until(lambda: not hook_threads())
    assert hook.counts.dropped == 1


@pytest.mark.parametrize("place", [f"http://{'a' * 64}.example/", "http://127.0.0.1:1/stra\u00dfe"])
def test_an_address_that_cannot_be_posted_to_does_not_end_the_thread(place):
    """urllib raises a ValueError over both."""
    with Hook(place, first_pause_s=0.01) as hook:
        hook.post({"number": 1})
        until(lambda: hook.counts.last_error)
        assert len(hook_threads()) == 1
        hook.close(grace_s=0)
    assert hook.counts.dropped == 1


def test_what_a_receiver_says_is_bounded_and_printable(caplog):
    said = "no\x1b[2J\x07" + "o" * 60_000
    with receiving(statuses=[500], said=said) as receiver, Hook(receiver.url) as hook:
        hook.post({"number": 1})
        until(lambda: hook.counts.last_error)
    assert hook.counts.last_error.startswith("500 no [2J ooo")
    assert len(hook.counts.last_error) <= 200
    (told,) = [record.getMessage() for record in caplog.records if "500" in record.getMessage()]
    assert told.isprintable()
    assert len(told) < 300
