"""What a tenant's media pass on their way into a camera's windows."""

from dataclasses import dataclass

from headstart_server.entrance import Entrance
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.room import MediaRoom
from headstart_server.settings import Limits


@dataclass(frozen=True)
class Gate:
    """Of one tenant; all of it but the name is the server's."""

    tenant: str
    entrance: Entrance
    decoder: MediaDecoder
    room: MediaRoom
    limits: Limits
