"""How long the next handshake of a tenant waits whose sockets were refused one after another.

A socket that is refused has cost the server a handshake, and often a camera that had just begun,
and counts as no request: without a wait a client could repeat it as fast as it connects.
"""

import time
from collections.abc import Callable

from headstart_server.delays import Delays

NUM_FREE = 10
"""Refused sockets at once after which nobody waits yet."""
EACH_S = 2.0
"""One more is free after each such time."""
LONGEST_S = 4.0
"""No handshake waits longer, and no tenant owes more than that."""


class HandshakeDelays(Delays):
    """Of each tenant."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(NUM_FREE, EACH_S, LONGEST_S, clock)
