"""All live cameras: those of sockets, and those that tenants have registered to be read."""

import asyncio
import hashlib
from http import HTTPStatus

from headstart.doctor.host_facts import num_cores
from headstart.live.sinks.hook import Hook
from headstart.live.sinks.mqtt import MqttPublisher
from headstart.live.sinks.mqtt_connection import is_broker
from headstart.live.sinks.outbox import AnswerSink
from headstart.live.sources.address import Address
from headstart.live.sources.confined.boxed_stream import StreamLimits
from headstart.live.sources.confined.shares import Shares
from headstart.live.sources.opening import camera as open_camera
from headstart.live.sources.source import Source
from headstart.media.stream import StreamBounds
from headstart_server.access_log import AccessLog
from headstart_server.camera_access import CameraAccess
from headstart_server.limits import Limits
from headstart_server.live.camera import OnFailure
from headstart_server.live.camera_resources import CameraSlots
from headstart_server.live.messages import Registration, Resume, Start
from headstart_server.live.send_queue import SendQueue
from headstart_server.live.socket_camera import SocketCamera
from headstart_server.live.source_camera import SourceCamera
from headstart_server.live.source_intake import MAX_WAITING
from headstart_server.refusal import RefusedError, bad_request

MAX_ENDED = 8
"""Cameras of one tenant that have ended and are still listed; the oldest go."""
READING_PROCESSORS = 0.5
"""Of all cameras together, in the server's process, which also answers its clients."""
LOGGED = ("id", "source", "stream", "reason", "reconnects", "answers", "frames", "windows")
"""What the access log gets of a camera that has ended."""
Token = bytes
"""Names a camera: the digest of its tenant and its token, so that no other tenant can name it."""


class SocketCameras:
    """Those of sockets, and how long one waits for its client. Used from one event loop only."""

    def __init__(self, slots: CameraSlots, limits: Limits, on_failure: OnFailure) -> None:
        self._slots, self._limits, self._on_failure = slots, limits, on_failure
        self._cameras: dict[Token, SocketCamera] = {}
        self._leaving: dict[Token, asyncio.TimerHandle] = {}

    @property
    def num_waiting(self) -> int:
        """Windows of all cameras that have ended and whose answer is not there yet."""
        return sum(camera.num_waiting for camera in self._cameras.values())

    async def start(self, tenant: str, start: Start, queue: SendQueue) -> SocketCamera:
        """A new camera that sends to this client; raises a refusal if there are too many."""
        resources = await self._slots.take(tenant, start)
        camera = SocketCamera(resources, start, self._on_failure)
        self._cameras[_name(tenant, camera.token)] = camera
        camera.begin(queue)
        return camera

    def resume(self, tenant: str, resume: Resume, queue: SendQueue) -> SocketCamera:
        """The camera of a broken connection, which sends to this client now."""
        name = _name(tenant, resume.token)
        camera = self._cameras.get(name)
        if camera is None:
            raise bad_request(
                "there is no such camera to resume: it ended, or its client was away for longer"
                f" than {self._limits.live_resume_s:g} s; start again"
            )
        camera.resume(queue, resume.number)
        self._stay(name)
        return camera

    def leave(self, camera: SocketCamera, queue: SendQueue, *, is_complete: bool) -> None:
        """A client's connection is gone; the camera waits for it, unless it has everything."""
        if not camera.detach(queue):
            return  # another connection has it
        name = _name(camera.tenant, camera.token)
        if is_complete or camera.is_done:
            self._remove(name)
        elif name in self._cameras:
            later = asyncio.get_running_loop().call_later
            self._leaving[name] = later(self._limits.live_resume_s, self._remove, name)

    def remove(self, camera: SocketCamera) -> None:
        self._remove(_name(camera.tenant, camera.token))

    async def drain(self) -> None:
        await asyncio.gather(*(camera.drain() for camera in self._cameras.values()))

    def close(self) -> None:
        for name in list(self._cameras):
            self._remove(name)

    def _stay(self, name: Token) -> None:
        if (leaving := self._leaving.pop(name, None)) is not None:
            leaving.cancel()

    def _remove(self, name: Token) -> None:
        self._stay(name)
        if (camera := self._cameras.pop(name, None)) is not None:
            self._slots.give_back(camera.tenant)
            camera.close()


def _name(tenant: str, token: str) -> Token:
    # A tenant's name may hold anything, so its length comes first.
    return hashlib.sha256(f"{len(tenant)}:{tenant}:{token}".encode()).digest()


class CameraRegistry:
    """Those that the server reads. Made in an event loop and used from it only."""

    def __init__(
        self, slots: CameraSlots, access: CameraAccess, limits: Limits, access_log: AccessLog
    ) -> None:
        self._slots, self._access, self._limits = slots, access, limits
        self._access_log = access_log
        self._reading = Shares(READING_PROCESSORS)
        self._decoding = Shares(min(limits.max_decoders, max(1, num_cores() // 2)))
        self._of_tenant: dict[str, dict[str, SourceCamera]] = {}
        """By id, in the order in which they were registered."""

    @property
    def num_waiting(self) -> int:
        """Windows of all cameras that have ended and whose answer is not there yet."""
        return sum(camera.num_waiting for camera in self._all())

    async def register(self, tenant: str, wanted: Registration) -> SourceCamera:
        """Begin to read a camera; raises a refusal if its address is not open, or all are taken."""
        address = self._access.check_source(wanted.source)
        url = None if wanted.hook is None else self._access.check_hook(wanted.hook)
        resources = await self._slots.take(tenant, wanted)
        try:
            camera = SourceCamera(
                resources,
                wanted,
                self._source(tenant, address),
                None if url is None else open_sink(url),
                self._access_log.note_error,
                self._over,
            )
        except Exception:  # no thread for the hook, say
            self._slots.give_back(tenant)
            raise
        self._of_tenant.setdefault(tenant, {})[camera.id] = camera
        return camera

    def of(self, tenant: str) -> list[SourceCamera]:
        """A tenant's cameras, and those that ended last."""
        return list(self._of_tenant.get(tenant, {}).values())

    def find(self, tenant: str, id: str) -> SourceCamera:
        """A tenant's camera; raises a refusal if there is none of this id."""
        camera = self._of_tenant.get(tenant, {}).get(id)
        if camera is None:
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "you have no camera of this id; GET /v1/cameras lists yours"
            )
        return camera

    def remove(self, tenant: str, id: str) -> None:
        """End a camera and forget it."""
        camera = self.find(tenant, id)
        self._forget(camera)
        camera.stop()

    async def drain(self) -> None:
        """Give the answers under way, and end every camera and its hook."""
        cameras = self._all()
        await asyncio.gather(*(camera.drain() for camera in cameras))
        await asyncio.gather(*(camera.closed for camera in cameras))

    def close(self) -> None:
        for camera in self._all():
            camera.close()

    def _all(self) -> list[SourceCamera]:
        return [camera for cameras in self._of_tenant.values() for camera in cameras.values()]

    def _source(self, tenant: str, address: Address) -> Source:
        bounds = StreamBounds(
            max_pixels=self._limits.max_frame_pixels,
            max_fps=min(StreamBounds.max_fps, self._limits.live_frames_per_minute / 60),
        )
        return open_camera(
            address,
            StreamLimits(bounds),
            name=address.place,
            max_waiting=MAX_WAITING,
            reading=self._reading.share(tenant),
            decoding=self._decoding.share(tenant),
        )

    def _over(self, camera: SourceCamera) -> None:
        """It holds nothing any more but its newest answers."""
        camera.close()
        # Not before: who registers cameras without end has only so many processes.
        camera.closed.add_done_callback(lambda _: self._slots.give_back(camera.tenant))
        described = camera.described()
        self._access_log.note(
            event="camera",
            tenant=camera.tenant or None,
            **{name: described[name] for name in LOGGED},
        )
        ended = [one for one in self.of(camera.tenant) if one.is_over]
        for one in ended[:-MAX_ENDED]:
            self._forget(one)

    def _forget(self, camera: SourceCamera) -> None:
        cameras = self._of_tenant[camera.tenant]
        del cameras[camera.id]
        if not cameras:
            del self._of_tenant[camera.tenant]


def open_sink(url: str) -> AnswerSink:
    """A broker for ``mqtt://`` and ``mqtts://``; anything else is posted to over HTTP."""
    return MqttPublisher(url) if is_broker(url) else Hook(url)
