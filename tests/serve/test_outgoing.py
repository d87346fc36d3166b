"""Messages on their way to a client that reads slowly."""

from headstart_client.wire import CloseCode
from headstart_server.live.outgoing import MAX_WAITING, Outgoing


def test_a_message_that_is_sent_is_said_to_be_and_one_that_is_left_out_is_not():
    outgoing = Outgoing()
    assert [outgoing.mention({"n": n}) for n in range(MAX_WAITING)] == [True] * MAX_WAITING
    assert not outgoing.mention({"n": MAX_WAITING})
    assert [message["n"] for message in outgoing._waiting] == list(range(MAX_WAITING))


def test_nothing_is_sent_after_the_end():
    outgoing = Outgoing()
    outgoing.finish(CloseCode.ENDED)
    assert not outgoing.mention({"n": 0})
    assert not outgoing._waiting
