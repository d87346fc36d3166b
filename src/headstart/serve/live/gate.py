"""What a tenant's media pass on their way into a camera's windows."""

from dataclasses import dataclass

from headstart.serve.entrance import Entrance
from headstart.serve.media.decoder import MediaDecoder
from headstart.serve.media.room import MediaRoom
from headstart.serve.settings import Limits


@dataclass(frozen=True)
class Gate:
    """Of one tenant; all of it but the name is the server's."""

    tenant: str
    entrance: Entrance
    decoder: MediaDecoder
    room: MediaRoom
    limits: Limits
