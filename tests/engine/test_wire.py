"""Messages through real sockets: whole, bounded, and nothing else gets through."""

import os
import pickle
import time

import pytest

pytest.importorskip("vllm")

import zmq

from headstart.drafting.board import Proposal
from headstart.drafting.draft import Draft
from headstart.engine import wire
from headstart.engine.drafter_line import MAX_EARLY_ASKS, TOLD_AGAIN_AFTER, DrafterLine
from headstart.engine.line import Line, OwnedLine, receive, send
from headstart.engine.listener import Listener
from headstart.errors import DraftingError

PATIENCE_S = 60.0


@pytest.fixture
def line():
    owned = OwnedLine.take()
    yield owned.line
    owned.close()


def drafted(ask="a", start=0, tokens=(5, 6, 7)):
    return wire.Drafted(ask, "eventgpt", start, tokens, 1.5)


def send_surely(socket, message):
    """The other end may still be connecting."""
    deadline = time.monotonic() + PATIENCE_S
    while not send(socket, message):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def heard_until(line_end, ask):
    """What a scheduler hears, up to the first draft for a request."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for request, draft in line_end.heard():
            if request == ask:
                return draft
        time.sleep(0.005)
    raise AssertionError(f"nothing came for {ask}")


@pytest.mark.parametrize(
    "message",
    [
        wire.Ask("a", "What?", (1, 2, 2, 3), bytes(12), 9, 1.0),
        wire.Said("a", (1, 2)),
        wire.Leave("a"),
    ],
)
def test_what_the_drafter_is_told_arrives_whole(line, message):
    inlet, outlet = line.asks_in(), line.asks_out()
    send_surely(outlet, message)
    assert wire.read_by_drafter(receive(inlet, PATIENCE_S)) == message
    inlet.close()
    outlet.close()


@pytest.mark.parametrize(
    "message",
    [drafted(), wire.Drafted("a", "m", 3, (), 0.0, wire.Stamps(1, 2, 3, 4, 5)), wire.Ready(7)],
)
def test_what_the_drafter_says_arrives_whole(message):
    assert wire.read_from_drafter(wire.encode(message)) == message


RUBBISH = {
    "nothing": b"",
    "noise": os.urandom(64),
    "pickle": pickle.dumps({"ask": "a"}),
    "half": wire.encode(drafted())[:-3],
    "another kind": wire.encode(wire.Leave("a")),
    "ids that are no integers": wire.encode(drafted()).replace(b"\x05\x06\x07", b"\xa1x\x06\x07"),
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=RUBBISH)
def test_what_is_not_a_message_is_dropped(data):
    assert wire.read_from_drafter(data) is None


def test_nobody_waits_for_somebody_who_is_not_there(line):
    outlet = line.asks_out()
    assert not send(outlet, wire.Leave("a"))
    outlet.close()


def test_a_full_line_drops_and_never_waits(line):
    inlet, outlet = line.asks_in(), line.asks_out()
    send_surely(outlet, wire.Leave("first"))
    # Far more than any buffer in between holds.
    large = wire.Ask("a", "?", (1, 1, 1, 1), bytes(4 * 2**20), 1, 0.0)
    assert not all(send(outlet, large) for _ in range(64))
    assert wire.read_by_drafter(receive(inlet, PATIENCE_S)) == wire.Leave("first")
    inlet.close()
    outlet.close()


def test_lines_are_not_shared_and_the_lowest_free_one_is_taken():
    first, second = OwnedLine.take(), OwnedLine.take()
    assert first.line != second.line
    first.close()
    again = OwnedLine.take()
    assert again.line == first.line
    again.close()
    second.close()


def test_a_directory_open_to_others_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"headstart-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"headstart-{os.getuid()}").chmod(0o777)
    with pytest.raises(DraftingError, match="open to others"):
        OwnedLine.take()


def test_the_scheduler_gets_drafts_of_its_requests_early_ones_too(line):
    scheduler, drafter = DrafterLine(line, resync=True), line.drafts_out()
    scheduler.begin("request-1", "one")
    send_surely(drafter, drafted("early", tokens=(1,)))
    send_surely(drafter, drafted("one"))
    assert heard_until(scheduler, "request-1") == Draft((5, 6, 7), "eventgpt", 1.5, 0)
    assert scheduler.begin("request-2", "early") == Draft((1,), "eventgpt", 1.5, 0)
    scheduler.end("request-1")
    send_surely(drafter, drafted("one"))
    send_surely(drafter, drafted("early", tokens=(1, 2)))
    assert heard_until(scheduler, "request-2").tokens == (1, 2)


def test_drafts_for_requests_that_never_come_are_forgotten(line):
    scheduler, drafter = DrafterLine(line, resync=True), line.drafts_out()
    scheduler.begin("request", "last")
    for number in range(2 * MAX_EARLY_ASKS):
        send_surely(drafter, drafted(f"stranger-{number}"))
    send_surely(drafter, drafted("last"))
    heard_until(scheduler, "request")
    assert scheduler.begin("x", "stranger-0") is None
    assert scheduler.begin("y", f"stranger-{2 * MAX_EARLY_ASKS - 1}") is not None


def test_a_drafter_is_told_once_what_it_did_not_foresee(line):
    asks, drafter = line.asks_in(), line.drafts_out()
    scheduler = DrafterLine(line, resync=True)
    scheduler.begin("request", "one")
    send_surely(drafter, drafted("one"))
    heard_until(scheduler, "request")

    def told(confirmed):
        # A message of our own marks where those of the call end.
        scheduler.follow("request", confirmed)
        send_surely(scheduler._asks, wire.Leave("mark"))
        messages = []
        while (message := wire.read_by_drafter(receive(asks, PATIENCE_S))) != wire.Leave("mark"):
            messages.append(message)
        return messages

    assert told([5, 6]) == []
    assert told([5, 6, 9]) == [wire.Said("one", (5, 6, 9))]
    assert told([5, 6, 9, 1]) == []  # it has not answered yet
    long = [5, 6, 9, *range(100, 100 + TOLD_AGAIN_AFTER)]
    assert told(long) == [wire.Said("one", tuple(long))]  # the first telling was lost
    assert told([*long, 1]) == []
    send_surely(drafter, drafted("one", start=len(long), tokens=(1, 2)))
    heard_until(scheduler, "request")
    assert told([*long, 1]) == []
    left_behind = [*long, 1, 2, 3]
    assert told(left_behind) == [wire.Said("one", tuple(left_behind))]
    assert told([]) == []


def test_a_listener_passes_on_what_concerns_somebody(line):
    listener, outlet = Listener(line), line.previews_out()
    ready, heard = [], []
    listener.on_ready = ready.append
    with listener.hearing("mine", heard.append):
        for message in (drafted("other"), wire.Ready(7), drafted("mine")):
            send_surely(outlet, message)
        outlet.send(b"noise")
        deadline = time.monotonic() + PATIENCE_S
        while not heard and time.monotonic() < deadline:
            time.sleep(0.005)
    assert heard == [drafted("mine")]
    assert ready == [7]
    listener.close()
    outlet.close()


def test_what_the_target_is_about_to_verify_can_be_shown(line):
    inlet, scheduler = line.previews_in(), DrafterLine(line, resync=True)
    scheduler.begin("request", "one")
    deadline = time.monotonic() + PATIENCE_S
    data = None
    while data is None and time.monotonic() < deadline:
        scheduler.show("request", Proposal((3, 4), "memory", 2.0), 1)
        data = receive(inlet, 0.01)
    assert wire.read_from_drafter(data) == wire.Drafted("one", "memory", 1, (3, 4), 2.0)
    inlet.close()


def test_a_line_is_over_sockets_of_files_alone():
    assert Line("/x")._address("asks") == "ipc:///x/asks"
    assert zmq.has("ipc")
