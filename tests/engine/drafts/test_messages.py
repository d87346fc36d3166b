"""Messages through real sockets: whole, bounded, and nothing else gets through."""

import os
import pickle

import pytest

pytest.importorskip("vllm")

import numpy as np
import zmq
from msgspec.structs import replace

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import ChannelLease, DraftChannel, receive, send
from headstart.engine.drafts.scheduler_drafts import (
    MAX_EARLY_ASKS,
    TOLD_AGAIN_AFTER,
    SchedulerDrafts,
)
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.errors import DraftingError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import Cascade
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bridge.pooling import MAX_TOKENS
from rig.waiting import PATIENCE_S, wait_until

FEATURES = np.arange(6, dtype=np.float16).reshape(2, 3)


@pytest.fixture
def channel():
    lease = ChannelLease.take()
    yield lease.channel
    lease.close()


def drafted(request="a", start=0, tokens=(5, 6, 7)):
    return messages.Drafted(request, Draft(tokens, "eventgpt", 1.5, start))


def seen(request="one"):
    return messages.Seen.of(request, "tower", FEATURES)


def send_surely(socket, message):
    """The other end may still be connecting."""
    wait_until(lambda: send(socket, message))


def begun(name="request"):
    """A request as a scheduler's cascade knows it."""
    return Cascade([], TextVocabulary(100)).begin(DraftRequest(name, StreamKey("", ""), "q"))


def heard_until(end, request):
    """What a scheduler hears, up to the first draft for a request."""
    found = []

    def is_heard():
        found.extend(draft for whose, draft in end.arrived() if whose is request)
        return found

    wait_until(is_heard, f"a draft for {request.request.id}")
    return found[0]


@pytest.mark.parametrize(
    "message",
    [
        messages.Ask("a", "What?", (1, 2, 2, 3), bytes(12), 9, 1.0),
        messages.Said("a", (1, 2)),
        messages.Leave("a"),
    ],
)
def test_what_the_drafter_is_told_arrives_whole(channel, message):
    inlet, outlet = channel.asks_in(), channel.asks_out()
    send_surely(outlet, message)
    assert messages.read_by_draft_model(receive(inlet, PATIENCE_S)) == message
    inlet.close()
    outlet.close()


@pytest.mark.parametrize(
    "message",
    [
        drafted(),
        messages.Drafted("a", Draft((), "m", 0.0, 3), messages.Stamps(1, 2, 3, 4, 5)),
        seen(),
        messages.Ready(7),
    ],
)
def test_what_the_drafter_says_arrives_whole(message):
    assert messages.read_from_draft_model(messages.encode(message)) == message


RUBBISH = {
    "nothing": b"",
    "noise": os.urandom(64),
    "pickle": pickle.dumps({"ask": "a"}),
    "half": messages.encode(drafted())[:-3],
    "another kind": messages.encode(messages.Leave("a")),
    "ids that are no integers": messages.encode(drafted()).replace(
        b"\x05\x06\x07", b"\xa1x\x06\x07"
    ),
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=RUBBISH)
def test_what_is_not_a_message_is_dropped(data):
    assert messages.read_from_draft_model(data) is None


def test_a_message_to_a_peer_that_is_not_there_is_dropped_at_once(channel):
    outlet = channel.asks_out()
    assert not send(outlet, messages.Leave("a"))
    outlet.close()


def test_a_full_channel_drops_and_never_waits(channel):
    inlet, outlet = channel.asks_in(), channel.asks_out()
    send_surely(outlet, messages.Leave("first"))
    # Far more than any buffer in between holds.
    large = messages.Ask("a", "?", (1, 1, 1, 1), bytes(4 * 2**20), 1, 0.0)
    assert not all(send(outlet, large) for _ in range(64))
    assert messages.read_by_draft_model(receive(inlet, PATIENCE_S)) == messages.Leave("first")
    inlet.close()
    outlet.close()


def test_channels_are_not_shared_and_the_lowest_free_one_is_taken():
    first, second = ChannelLease.take(), ChannelLease.take()
    assert first.channel != second.channel
    first.close()
    again = ChannelLease.take()
    assert again.channel == first.channel
    again.close()
    second.close()


def test_a_directory_open_to_others_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"headstart-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"headstart-{os.getuid()}").chmod(0o777)
    with pytest.raises(DraftingError, match="open to others"):
        ChannelLease.take()


def test_the_scheduler_gets_drafts_of_its_requests_early_ones_too(channel):
    scheduler, drafter = SchedulerDrafts(channel, resync=True), channel.drafts_out()
    first, second = begun("request-1"), begun("request-2")
    followed, early = scheduler.begin(first, "one")
    assert early == []
    send_surely(drafter, drafted("early", tokens=(1,)))
    send_surely(drafter, drafted("one"))
    assert heard_until(scheduler, first) == Draft((5, 6, 7), "eventgpt", 1.5, 0)
    assert scheduler.begin(second, "early")[1] == [Draft((1,), "eventgpt", 1.5, 0)]
    scheduler.end(followed)
    send_surely(drafter, drafted("one"))
    send_surely(drafter, drafted("early", tokens=(1, 2)))
    assert heard_until(scheduler, second).tokens == (1, 2)


def test_a_request_that_ends_takes_no_draft_from_another_of_its_name(channel):
    scheduler, drafter = SchedulerDrafts(channel, resync=True), channel.drafts_out()
    followed, _ = scheduler.begin(begun("request-1"), "one")
    second = begun("request-2")
    scheduler.begin(second, "one")
    scheduler.end(followed)
    send_surely(drafter, drafted("one"))
    assert heard_until(scheduler, second) == drafted().draft


def test_drafts_for_requests_that_never_come_are_forgotten(channel):
    scheduler, drafter = SchedulerDrafts(channel, resync=True), channel.drafts_out()
    last = begun()
    scheduler.begin(last, "last")
    for number in range(2 * MAX_EARLY_ASKS):
        send_surely(drafter, drafted(f"stranger-{number}"))
    send_surely(drafter, drafted("last"))
    heard_until(scheduler, last)
    assert scheduler.begin(begun(), "stranger-0")[1] == []
    assert scheduler.begin(begun(), f"stranger-{2 * MAX_EARLY_ASKS - 1}")[1] != []


def test_the_scheduler_gets_what_a_tower_saw_early_or_not(channel):
    scheduler, drafter = SchedulerDrafts(channel, resync=True), channel.drafts_out()
    request = begun()
    scheduler.begin(request, "one")
    for message in (seen("early"), drafted("early"), seen("one")):
        send_surely(drafter, message)
    np.testing.assert_array_equal(heard_until(scheduler, request)["tower"], FEATURES)
    _, (features, draft) = scheduler.begin(begun(), "early")
    np.testing.assert_array_equal(features["tower"], FEATURES)
    assert draft == drafted().draft


FALSE_FEATURES = {
    "more than was sent": replace(seen(), shape=(3, 3)),
    "of no tokens": replace(seen(), shape=(0, 3), values=b""),
    "of a negative shape": replace(seen(), shape=(-2, -3)),
    "not numbers": messages.Seen.of("one", "tower", np.full((2, 3), np.nan, np.float16)),
}


@pytest.mark.parametrize("name", FALSE_FEATURES)
def test_features_that_are_none_are_dropped(channel, name):
    scheduler, drafter = SchedulerDrafts(channel, resync=True), channel.drafts_out()
    request = begun()
    scheduler.begin(request, "one")
    send_surely(drafter, FALSE_FEATURES[name])
    send_surely(drafter, drafted("one"))
    assert heard_until(scheduler, request) == drafted().draft


def test_the_largest_features_of_a_bridge_fit_into_a_message():
    widest = np.zeros((MAX_TOKENS, 16_384), np.float16)
    assert (
        len(messages.encode(messages.Seen.of("a" * 64, "tower", widest))) < messages.MAX_SEEN_BYTES
    )


def test_a_drafter_is_told_once_what_it_did_not_foresee(channel):
    asks, drafter = channel.asks_in(), channel.drafts_out()
    scheduler, request = SchedulerDrafts(channel, resync=True), begun()
    followed, _ = scheduler.begin(request, "one")
    send_surely(drafter, drafted("one"))
    heard_until(scheduler, request)

    def told(confirmed):
        # A message of our own marks where those of the call end.
        scheduler.follow(followed, confirmed)
        mark = messages.Leave("mark")
        send_surely(scheduler._asks, mark)
        heard = []
        while (heard_next := messages.read_by_draft_model(receive(asks, PATIENCE_S))) != mark:
            heard.append(heard_next)
        return heard

    assert told([5, 6]) == []
    assert told([5, 6, 9]) == [messages.Said("one", (5, 6, 9))]
    assert told([5, 6, 9, 1]) == []  # it has not answered yet
    long = [5, 6, 9, *range(100, 100 + TOLD_AGAIN_AFTER)]
    assert told(long) == [messages.Said("one", tuple(long))]  # the first telling was lost
    assert told([*long, 1]) == []
    send_surely(drafter, drafted("one", start=len(long), tokens=(1, 2)))
    heard_until(scheduler, request)
    assert told([*long, 1]) == []
    left_behind = [*long, 1, 2, 3]
    assert told(left_behind) == [messages.Said("one", tuple(left_behind))]
    assert told([]) == []


def test_a_subscriber_hands_on_the_drafts_of_the_requests_it_has(channel):
    subscriber, outlet = DraftSubscriber(channel), channel.previews_out()
    ready, heard = [], []
    subscriber.on_ready = ready.append
    with subscriber.subscribe("mine", heard.append):
        for message in (drafted("other"), messages.Ready(7), drafted("mine")):
            send_surely(outlet, message)
        outlet.send(b"noise")
        wait_until(lambda: heard)
    assert heard == [drafted("mine")]
    assert ready == [7]
    subscriber.close()
    outlet.close()


def test_what_the_target_is_about_to_verify_can_be_shown(channel):
    inlet, scheduler = channel.previews_in(), SchedulerDrafts(channel, resync=True)
    followed, _ = scheduler.begin(begun(), "one", is_shown=True)
    unwanted, _ = scheduler.begin(begun(), "other")
    draft = Draft((3, 4), "memory", 2.0, 1)
    found = []

    def is_shown():
        scheduler.show(unwanted, draft)
        scheduler.show(followed, draft)
        found.append(receive(inlet, 0.01))
        return found[-1]

    wait_until(is_shown)
    assert messages.read_from_draft_model(found[-1]) == messages.Drafted("one", draft)
    inlet.close()


def test_a_channel_is_over_sockets_of_files_alone():
    assert DraftChannel("/x")._address("asks") == "ipc:///x/asks"
    assert zmq.has("ipc")
