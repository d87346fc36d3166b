"""The live cameras of all sockets, and how long one waits for its client."""

import asyncio
import hashlib

from headstart_server.live.failures import OnFailure
from headstart_server.live.messages import Resume, Start
from headstart_server.live.outgoing import Outgoing
from headstart_server.live.places import CameraPlaces
from headstart_server.live.socket_camera import SocketCamera
from headstart_server.refusal import bad_request
from headstart_server.settings import Limits

Token = bytes
"""Names a camera: the digest of its tenant and its token, so that no other tenant can name it."""


class Cameras:
    """Made in an event loop and used from it only."""

    def __init__(self, places: CameraPlaces, limits: Limits, on_failure: OnFailure) -> None:
        self._places, self._limits, self._on_failure = places, limits, on_failure
        self._cameras: dict[Token, SocketCamera] = {}
        self._leaving: dict[Token, asyncio.TimerHandle] = {}

    @property
    def num_waiting(self) -> int:
        """Windows of all cameras that have ended and whose answer is not there yet."""
        return sum(camera.num_waiting for camera in self._cameras.values())

    async def start(self, tenant: str, start: Start, outgoing: Outgoing) -> SocketCamera:
        """A new camera that sends to this client; raises a refusal if there are too many."""
        place = await self._places.take(tenant, start)
        camera = SocketCamera(place, start, self._on_failure)
        self._cameras[_name(tenant, camera.token)] = camera
        camera.begin(outgoing)
        return camera

    def resume(self, tenant: str, resume: Resume, outgoing: Outgoing) -> SocketCamera:
        """The camera of a broken connection, which sends to this client now."""
        name = _name(tenant, resume.token)
        camera = self._cameras.get(name)
        if camera is None:
            raise bad_request(
                "there is no such camera to resume: it ended, or its client was away for longer"
                f" than {self._limits.live_resume_s:g} s; start again"
            )
        camera.resume(outgoing, resume.number)
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()
        return camera

    def leave(self, camera: SocketCamera, outgoing: Outgoing, *, is_complete: bool) -> None:
        """A client's connection is gone; the camera waits for it, unless it has everything."""
        if not camera.detach(outgoing):
            return  # another connection has it
        name = _name(camera.tenant, camera.token)
        if is_complete or camera.is_done:
            self._remove(name)
        elif name in self._cameras:
            loop = asyncio.get_running_loop()
            delay_s = self._limits.live_resume_s
            self._leaving[name] = loop.call_later(delay_s, self._remove, name)

    def remove(self, camera: SocketCamera) -> None:
        """End a camera now."""
        self._remove(_name(camera.tenant, camera.token))

    async def drain(self) -> None:
        """Give the answers under way, and end every camera."""
        await asyncio.gather(*(camera.drain() for camera in self._cameras.values()))

    def close(self) -> None:
        """End every camera now."""
        for name in list(self._cameras):
            self._remove(name)

    def _remove(self, name: Token) -> None:
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()
        if (camera := self._cameras.pop(name, None)) is not None:
            self._places.give_back(camera.tenant)
            camera.close()


def _name(tenant: str, token: str) -> Token:
    # A tenant's name may hold anything, so its length comes first.
    return hashlib.sha256(f"{len(tenant)}:{tenant}:{token}".encode()).digest()
