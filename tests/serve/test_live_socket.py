"""One live connection whose client leaves while it is told something."""

import asyncio

from headstart.client.wire import SUBPROTOCOL
from headstart.serve.live.socket import LiveSocket
from headstart.serve.request_context import RequestContext
from headstart.serve.settings import Limits


def serve(first: str, gone_after: int) -> RequestContext:
    """Serve a client whose connection is gone after so many messages to it."""
    told = []

    async def receive():
        return {"type": "websocket.receive", "text": first}

    async def send(message):
        if len(told) == gone_after:
            raise OSError("the client is gone")  # as uvicorn's ClientDisconnected
        told.append(message)

    scope = {"type": "websocket", "path": "/v1/live", "subprotocols": [SUBPROTOCOL], "headers": []}
    context = RequestContext(scope, receive, send, lambda: False)
    socket = LiveSocket(context, None, Limits(), lambda: None)
    asyncio.run(socket.serve(lambda: None))
    assert len(told) == gone_after
    return context


def test_a_client_that_leaves_before_its_refusal_is_no_failure_of_the_server():
    assert serve("rubbish", gone_after=1).details["code"] == 1008  # accepted, and no more
    assert serve("rubbish", gone_after=2).details["code"] == 1008  # refused, and not closed


def test_a_client_that_leaves_before_it_is_accepted_is_no_failure_of_the_server():
    assert serve("rubbish", gone_after=0).details == {"left": 0}
