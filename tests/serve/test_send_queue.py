"""Messages on their way to a client that reads slowly."""

from headstart_client.wire import CloseCode
from headstart_server.live.send_queue import MAX_WAITING, SendQueue


def test_a_message_that_is_sent_is_said_to_be_and_one_that_is_left_out_is_not():
    queue = SendQueue()
    assert [queue.send_if_room({"n": n}) for n in range(MAX_WAITING)] == [True] * MAX_WAITING
    assert not queue.send_if_room({"n": MAX_WAITING})
    assert [message["n"] for message in queue._waiting] == list(range(MAX_WAITING))


def test_nothing_is_sent_after_the_end():
    queue = SendQueue()
    queue.finish(CloseCode.ENDED)
    assert not queue.send_if_room({"n": 0})
    assert not queue._waiting
