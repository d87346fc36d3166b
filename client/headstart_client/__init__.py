"""A client of the server's live socket, which needs no engine."""

from headstart_client.live_client import LiveClient

__all__ = ["LiveClient"]
